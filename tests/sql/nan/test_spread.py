"""What is the same for origins on record is tested in test_known_spread."""

from __future__ import annotations

import pytest

STARTS = "origin step rank seq name received"
HANDOVERS = "step instance rank recorded seq name gives may_give gets"
LIVING = "step rank seq entry"
UNRECORDED = "0 0 1 -1 sum.4 false"
"""Origin 0: rank 1, which left no record; rank 0 saw it first, in its sum.4."""


TO_ZERO = ("0 i 0 true 5 sum.4 false false true", "0 i 1 false - - false true false")


def spread(ask, *starts: str, handovers: tuple[str, ...] = TO_ZERO):
    """Return the question where what ranks 0 and 2 received lives."""
    db = ask("nan/spread").table("starts", STARTS, *starts)
    db.table("handovers", HANDOVERS, *handovers)
    return db.table("living", LIVING, "0 0 5 received", "0 2 4 received")


def test_from_a_rank_without_record_to_those_that_got_it(ask) -> None:
    assert spread(ask, UNRECORDED).rows("origin step rank ready hops") == [
        (0, 0, 0, 6, 1),
        (0, 0, 1, -1, 0),
    ]


@pytest.mark.xfail(strict=True, reason="the call without a record is named again, as None")
def test_the_call_it_was_first_seen_by_is_named_once_a_side(ask) -> None:
    paths = dict(spread(ask, UNRECORDED).rows("rank path"))
    assert [hop["rank"] for hop in paths[1]] == [1]
    assert [hop["rank"] for hop in paths[0]] == [1, 0]


def test_to_every_instance_that_it_left_no_record_of(ask) -> None:
    to_two = ("0 j 2 true 4 recv.0 false false true", "0 j 1 false - - false true false")
    db = spread(ask, UNRECORDED, handovers=TO_ZERO + to_two)
    assert db.rows("rank hops") == [(0, 1), (1, 0), (2, 1)]


def test_what_it_gave_on_record_before_its_record_ends(ask) -> None:
    to_two = ("0 j 2 true 4 recv.0 false false true", "0 j 1 true 0 send.0 true false false")
    db = spread(ask, UNRECORDED, handovers=to_two).table("shards", "step rank lineage", "0 1 false")
    assert db.rows("rank ready") == [(1, -1), (2, 5)]


def test_origins_with_and_without_record_side_by_side(ask) -> None:
    db = spread(ask, "0 0 3 7 log.0 false", UNRECORDED.replace("0", "1", 1))
    assert db.rows("origin rank hops") == [(0, 3, 0), (1, 0, 1), (1, 1, 0)]


def test_no_origin_gives_nothing(ask) -> None:
    assert spread(ask).rows() == []
    assert ask("nan/spread").rows() == []
