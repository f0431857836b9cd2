"""What is the same for origins on record is tested in test_known_spread."""

from __future__ import annotations

STARTS = "origin step rank seq name received"
HANDOVERS = "step instance rank recorded seq name gives may_give gets"
LIVING = "step rank seq entry"
KNOWN = "origin step rank ready hops path"
UNRECORDED = "0 0 1 -1 sum.4 false"
"""Origin 0: rank 1, which left no record; rank 0 saw it first, in its sum.4."""


TO_ZERO = ("0 i 0 true 5 sum.4 false false true", "0 i 1 false - - false true false")


def spread(ask, *starts: str, handovers: tuple[str, ...] = TO_ZERO, known: tuple[str, ...] = ()):
    """Return the question where what ranks 0 and 2 received lives."""
    db = ask("nan/spread").table("unrecorded_starts", STARTS, *starts)
    db.table("known_spread", KNOWN, *known).table("handovers", HANDOVERS, *handovers)
    return db.table("living", LIVING, "0 0 5 received", "0 2 4 received")


def test_from_a_rank_without_record_to_those_that_got_it(ask) -> None:
    assert spread(ask, UNRECORDED).rows("origin step rank ready hops") == [
        (0, 0, 0, 6, 1),
        (0, 0, 1, -1, 0),
    ]


def test_the_call_it_was_first_seen_by_is_named_once_a_side(ask) -> None:
    assert spread(ask, UNRECORDED).rows("rank path") == [
        (0, [{"rank": 1, "call": "sum.4"}, {"rank": 0, "call": "sum.4"}]),
        (1, [{"rank": 1, "call": "sum.4"}]),
    ]


def test_to_every_instance_that_it_left_no_record_of(ask) -> None:
    to_two = ("0 j 2 true 4 recv.0 false false true", "0 j 1 false - - false true false")
    db = spread(ask, UNRECORDED, handovers=TO_ZERO + to_two)
    assert db.rows("rank hops") == [(0, 1), (1, 0), (2, 1)]


def test_what_it_gave_on_record_before_its_record_ends(ask) -> None:
    to_two = ("0 j 2 true 4 recv.0 false false true", "0 j 1 true 0 send.0 true false false")
    db = spread(ask, UNRECORDED, handovers=to_two).table("shards", "step rank lineage", "0 1 false")
    assert db.rows("rank ready") == [(1, -1), (2, 5)]


def test_where_origins_on_record_came_to_as_it_is(ask) -> None:
    path = [{"rank": 3, "call": "log.0"}]
    db = spread(ask, known=("4 2 3 7 0 [{'rank':3,'call':log.0}]",))
    assert db.rows() == [(4, 2, 3, 7, 0, path)]


def test_origins_with_and_without_record_in_order(ask) -> None:
    known = ("0 0 3 7 0 -", "2 0 1 7 0 -", "2 0 0 7 0 -")
    db = spread(ask, UNRECORDED.replace("0", "1", 1), known=known)
    assert db.rows("origin rank hops") == [(0, 3, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (2, 1, 0)]


def test_no_origin_gives_nothing(ask) -> None:
    assert spread(ask).rows() == []
    assert ask("nan/spread").rows() == []
