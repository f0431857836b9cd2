from __future__ import annotations

import pytest

ONSETS = "step rank seq entry"
HANDOVERS = "step instance rank seq name gets may_give"
SPREAD = "origin step rank ready"
ENTRIES = "step rank seq entry found"


def received(
    ask,
    *handovers: str,
    onsets: tuple[str, ...] = ("0 0 5 received",),
    spread: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    recovered: tuple[str, ...] = (),
    missing: str = "0 i 1 - - false true",
):
    """Return the question where rank 0 got its first bad value by sum.4, its call 5."""
    db = ask("nan/unrecorded_origins").table("onsets", ONSETS, *onsets)
    rows = ["0 i 0 5 sum.4 true false", *([missing] if missing else []), *handovers]
    db.table("handovers", HANDOVERS, *rows)
    db.table("known_spread", SPREAD, *spread).table("origins", "origin step", *origins)
    db.table("recovered_steps", "step recovered_at", *recovered)
    return db.table("entries", ENTRIES, "0 0 5 received [inf,-inf]", "0 0 5 import [nan]")


def test_a_rank_without_record_whose_part_was_bad(ask) -> None:
    assert received(ask).rows() == [(0, 0, 1, 0, 5, "sum.4", ["inf", "-inf"])]


def test_not_when_every_member_is_on_record(ask) -> None:
    assert received(ask, missing="").rows() == []
    assert received(ask, missing="0 i 1 7 sum.2 true false").rows() == []


@pytest.mark.parametrize("missing", ["0 j 1 - - false true", "1 i 1 - - false true"])
def test_not_for_another_instance(ask, missing: str) -> None:
    assert received(ask, missing=missing).rows() == []


@pytest.mark.parametrize(
    "onset", ["0 0 4 birth", "0 0 4 received", "0 0 5 import", "0 2 5 received", "1 0 5 received"]
)
def test_not_when_the_first_bad_value_of_the_rank_was_another(ask, onset: str) -> None:
    assert received(ask, onsets=(onset,)).rows() == []


@pytest.mark.parametrize(
    ("known", "rows"),
    [
        ("0 0 0 6", []),
        ("0 0 0 3", []),
        ("0 0 0 7", [(1,)]),
        ("0 0 2 6", [(1,)]),
        ("0 1 0 6", [(1,)]),
    ],
    ids=["by this call", "before it", "after it", "to another rank", "in another step"],
)
def test_not_when_a_known_origin_leads_there(ask, known: str, rows: list) -> None:
    assert received(ask, spread=(known,)).rows("rank") == rows


def test_numbered_after_the_origins_on_record(ask) -> None:
    db = received(
        ask,
        "0 j 2 9 recv.0 true false",
        "0 j 4 - - false true",
        onsets=("0 0 5 received", "0 2 9 received"),
        origins=("0 0", "1 0", "2 3"),
    )
    assert db.rows("origin rank by_rank") == [(3, 1, 0), (4, 4, 2)]


def test_seen_by_several_it_is_named_where_it_was_first(ask) -> None:
    later = "0 i 2 4 sum.3 true false"
    onsets = ("0 0 5 received", "0 2 4 received")
    assert received(ask, later, onsets=onsets).rows("rank by_rank seq name") == [(1, 2, 4, "sum.3")]
    onsets = ("0 0 5 received", "0 2 5 received")
    same = later.replace(" 4 ", " 5 ")
    assert received(ask, same, onsets=onsets).rows("by_rank") == [(0,)]


def test_every_member_without_record_is_one(ask) -> None:
    assert received(ask, "0 i 2 - - false true").rows("origin rank") == [(0, 1), (1, 2)]


def test_a_receive_that_looks_finite_holds_nothing_on_record(ask) -> None:
    db = ask("nan/unrecorded_origins").table("onsets", ONSETS, "0 0 5 received")
    db.table("handovers", HANDOVERS, "0 i 0 5 irecv.4 true false", "0 i 1 - - false true")
    assert db.rows("rank name found") == [(1, "irecv.4", [])]


def test_what_an_earlier_step_did_is_no_new_origin(ask) -> None:
    second = ("1 i 0 5 sum.8 true false", "1 i 2 - - false true")
    onsets = ("0 0 5 received", "1 0 5 received")
    assert received(ask, *second, onsets=onsets).rows("step rank") == [(0, 1)]
    assert received(ask, *second, onsets=onsets[1:], origins=("0 0",)).rows() == []
    assert received(ask, *second, onsets=onsets[1:], origins=("0 1",)).rows("step") == [(1,)]


def test_not_in_a_step_that_recovered(ask) -> None:
    second = ("1 i 0 5 sum.8 true false", "1 i 2 - - false true")
    onsets = ("0 0 5 received", "1 0 5 received")
    assert received(ask, recovered=("0 1",)).rows() == []
    assert received(ask, recovered=("1 2",)).rows("step") == [(0,)]
    db = received(ask, *second, onsets=onsets, recovered=("0 2",))
    assert db.rows("step rank") == [(1, 2)]


def test_nothing_handed_over_gives_nothing(ask) -> None:
    assert ask("nan/unrecorded_origins").rows() == []
