from __future__ import annotations


def test_sides_of_a_key(ask) -> None:
    db = ask("rl/side_keys").table(
        "keys", "side part step rank key", "a 0 0 0 uid", "b 0 0 0 uid", "b 1 0 1 advantages"
    )
    assert db.rows() == [("advantages", False, True, True), ("uid", True, True, False)]


def test_nothing(ask) -> None:
    assert ask("rl/side_keys").rows() == []
