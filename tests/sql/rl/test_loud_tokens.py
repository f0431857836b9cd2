from __future__ import annotations


def test_only_cells_that_are_loud(ask) -> None:
    db = ask("rl/loud_tokens").table(
        "clean_tokens", "key pair step rank token", "k 0 0 0 1", "k 1 0 1 2", "k 2 0 2 3"
    )
    db.table("noise", "key step rank tokens loud", "k 0 0 9 true", "k 0 1 9 false", "k 0 2 1 -")
    assert db.rows("pair token") == [(0, 1)]


def test_nothing(ask) -> None:
    assert ask("rl/loud_tokens").rows() == []
