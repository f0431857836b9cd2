"""Where a difference begins in the source."""

from __future__ import annotations


def test_only_where_a_difference_begins(ask) -> None:
    db = ask("diff/finding_stacks")
    db.table(
        "findings",
        "step rank seq status stack_id",
        "0 1 5 suspect 9",
        "0 1 6 propagated 9",
        "0 1 7 drift 9",
    )
    db.table("target_stacks", "stack_id stack", "9 train.py:3", "8 other.py:1")
    assert db.rows() == [(0, 1, 5, "train.py:3")]
