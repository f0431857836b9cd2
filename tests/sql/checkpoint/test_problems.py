from __future__ import annotations


def test_in_order_of_sides(ask) -> None:
    db = ask("checkpoint/problems").table(
        "file_problems", "side code text tensors", "b file_missing x [w]", "a file_unsafe y []"
    )
    assert db.rows() == [("a", "file_unsafe", "y", []), ("b", "file_missing", "x", ["w"])]


def test_nothing(ask) -> None:
    assert ask("checkpoint/problems").rows() == []
