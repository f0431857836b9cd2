from __future__ import annotations

COLUMNS = "key pair step rank token context gap p"


def test_contexts_far_from_the_rest(ask) -> None:
    rows = [
        "k 3 1 0 4 7 -0.3 0.3",
        "k 2 0 1 5 7 0.2 0.3",
        "k 4 0 0 1 8 0.01 0.3",
        "k 5 0 0 1 9 0.12 0.3",
    ]
    db = ask("rl/outliers").table("clean_tokens", COLUMNS, *rows)
    db.table("pairs", "pair uid sample", "2 u 1")
    assert db.rows() == [("k", 0, 1, 2, 5, 2, -0.3, 3, "u", 1)]


def test_nothing(ask) -> None:
    assert ask("rl/outliers").rows() == []
