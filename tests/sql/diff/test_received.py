"""Results that another rank spoilt."""

from __future__ import annotations

FINDINGS = "step rank seq name kind status is_input"
INSTANCES = "step instance rank seq"


def test_another_member_brought_what_differs(ask) -> None:
    db = ask("diff/received")
    db.table(
        "findings",
        FINDINGS,
        "0 0 4 all_reduce.0 comm suspect false",
        "0 1 6 all_reduce.0 comm propagated true",
    )
    db.table("instances", INSTANCES, "0 tp#0 0 4", "0 tp#0 1 6")
    assert db.rows() == [(0, 0, 4, 1, "all_reduce.0")]


def test_all_members_brought_the_same(ask) -> None:
    db = ask("diff/received")
    db.table("findings", FINDINGS, "0 0 4 all_reduce.0 comm suspect false")
    db.table("instances", INSTANCES, "0 tp#0 0 4", "0 tp#0 1 6")
    assert db.rows() == []
