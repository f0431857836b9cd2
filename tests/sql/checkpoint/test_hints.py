from __future__ import annotations


def test_what_has_an_explanation(ask) -> None:
    db = ask("checkpoint/hints").table("explanations", "pair hint", "2 scaled", "1 ''", "0 flipped")
    assert db.rows() == [(0, "flipped"), (2, "scaled")]


def test_nothing(ask) -> None:
    assert ask("checkpoint/hints").rows() == []
