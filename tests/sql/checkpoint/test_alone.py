from __future__ import annotations


def test_weights_come_first(ask) -> None:
    columns = "side kind status name shape_a"
    db = ask("checkpoint/alone").table(
        "strays",
        columns,
        "b weight only_in_b z -",
        "a optimizer only_in_a m [2]",
        "a weight only_in_a y [3,4]",
    )
    assert db.rows(columns) == [
        ("a", "weight", "only_in_a", "y", [3, 4]),
        ("b", "weight", "only_in_b", "z", None),
        ("a", "optimizer", "only_in_a", "m", [2]),
    ]


def test_nothing(ask) -> None:
    assert ask("checkpoint/alone").rows() == []
