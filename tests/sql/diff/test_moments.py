"""What orders calls across ranks."""

from __future__ import annotations


def test_in_the_order_of_each_rank(ask) -> None:
    db = ask("diff/moments")
    db.table(
        "instances", "step rank seq item instance", "0 1 5 0 tp#0", "0 0 9 0 dp#0", "0 0 3 0 tp#0"
    )
    assert db.rows() == [(0, 0, 3, "tp#0"), (0, 0, 9, "dp#0"), (0, 1, 5, "tp#0")]
