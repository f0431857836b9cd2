"""Calls that only one dump has, of a number that can be read."""

from __future__ import annotations


def test_the_first_thousand(ask) -> None:
    db = ask("diff/told_unpaired")
    rows = [f"0 0 {side} {seq}" for seq in range(600) for side in ("target", "bench")]
    db.table("unpaired", "step rank side seq", *rows)
    found = db.rows("side seq")
    assert len(found) == 1000
    assert found[:2] == [("bench", 0), ("bench", 1)]
    assert found[-1] == ("target", 399)
