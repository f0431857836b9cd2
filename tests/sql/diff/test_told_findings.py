"""The findings that an answer needs."""

from __future__ import annotations


def test_the_first_thousand_and_all_beginnings(ask) -> None:
    db = ask("diff/told_findings")
    rows = [f"0 0 {seq} propagated" for seq in range(1500)]
    rows += ["0 0 1501 suspect", "0 0 1502 propagated", "1 3 0 random", "1 3 1 drift"]
    db.table("findings", "step rank seq status", *reversed(rows))
    found = db.rows("step rank seq status")
    assert [row[2] for row in found[:1000]] == list(range(1000))
    assert found[1000:] == [(0, 0, 1501, "suspect"), (1, 3, 0, "random")]
