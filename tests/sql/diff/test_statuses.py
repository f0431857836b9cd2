"""How many calls have which status."""

from __future__ import annotations


def test_findings_and_calls_without_a_partner(ask) -> None:
    db = ask("diff/statuses")
    db.table("findings", "step rank seq status", "0 0 1 drift", "0 1 1 drift", "0 0 2 suspect")
    db.table("unpaired", "step side replaced", "0 bench true", "0 target true", "0 target false")
    assert db.rows() == [("drift", 2), ("only_in_target", 1), ("replaced", 2), ("suspect", 1)]
