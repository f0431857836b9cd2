from __future__ import annotations


def test_keys_of_both_sides_of_which_nothing_was_compared(ask) -> None:
    db = ask("rl/uncompared").table(
        "side_keys",
        "key in_a in_b",
        *(f"{key} true true" for key in ("same", "mixed", "nowhere", "uid")),
        "lone true false",
    )
    db.table("arrays", "key dtype_1 dtype_2", "same f f", "same text f", "mixed text f")
    assert db.rows() == [("mixed", True), ("nowhere", False)]


def test_nothing(ask) -> None:
    assert ask("rl/uncompared").rows() == []
