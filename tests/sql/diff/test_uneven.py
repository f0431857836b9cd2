"""What an alignment must pair."""

from __future__ import annotations


def test_only_parts_that_differ_in_order(ask) -> None:
    db = ask("diff/uneven").table(
        "sequences",
        "step part even side seq",
        "0 a true bench 0",
        "0 b false target 4",
        "0 b false bench 3",
        "0 b false bench 2",
    )
    assert db.rows("side seq") == [("bench", 2), ("bench", 3), ("target", 4)]
