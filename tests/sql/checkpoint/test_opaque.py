from __future__ import annotations


def test_what_differs_and_is_on_both_sides(ask) -> None:
    db = ask("checkpoint/opaque")
    columns = "name kind content"
    db.table("entries_a", columns, "epoch value 3", "x opaque 1", "same value 5", "gone value 1")
    db.table("entries_b", columns, "epoch value 4", "x opaque 2", "same value 5", "new value 1")
    assert db.rows() == [
        ("epoch", "value", "3 against 4; not a tensor"),
        ("x", "opaque", "its bytes differ; it was not looked into"),
    ]


def test_of_another_kind_is_another(ask) -> None:
    db = ask("checkpoint/opaque").table("entries_a", "name kind content", "x value 1")
    assert db.table("entries_b", "name kind content", "x opaque 2").rows() == []


def test_nothing(ask) -> None:
    assert ask("checkpoint/opaque").rows() == []
