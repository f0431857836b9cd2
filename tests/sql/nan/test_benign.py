from __future__ import annotations

import pytest

ENTRIES = "step rank seq entry name found given"
PLACES = "step rank seq entry"
DIED = "died out: every way onward ends in finite results, or nothing uses it"
GIVEN = "asked for by an infinite argument; every way onward ends in finite results"


@pytest.mark.parametrize(("given", "reason"), [("true", GIVEN), ("false", DIED)])
def test_an_entry_that_does_not_live(ask, given: str, reason: str) -> None:
    db = ask("nan/benign").table("entries", ENTRIES, f"2 1 3 birth mask.0 [-inf] {given}")
    assert db.rows() == [(2, 1, 3, "mask.0", ["-inf"], reason)]


@pytest.mark.parametrize("entry", "birth turned saved import lost uninitialized carried".split())
def test_any_entry_that_came_in_here(ask, entry: str) -> None:
    db = ask("nan/benign").table("entries", ENTRIES, f"0 0 3 {entry} a [nan] false")
    assert db.rows("seq reason") == [(3, DIED)]


def test_not_what_was_received_it_is_told_of_where_it_began(ask) -> None:
    db = ask("nan/benign").table("entries", ENTRIES, "0 0 3 received sum.0 [nan] false")
    assert db.rows() == []


@pytest.mark.parametrize(
    ("living", "seqs"),
    [
        ("0 0 3 birth", []),
        ("0 0 4 birth", [3]),
        ("0 0 3 received", [3]),
        ("0 1 3 birth", [3]),
        ("1 0 3 birth", [3]),
    ],
)
def test_not_an_entry_that_lives(ask, living: str, seqs: list[int]) -> None:
    db = ask("nan/benign").table("entries", ENTRIES, "0 0 3 birth log.0 [nan] false")
    assert db.table("living", PLACES, living).rows("seq") == [(seq,) for seq in seqs]


def test_a_loss_scale_that_was_too_high(ask) -> None:
    places = ("0 0 3 birth", "0 0 5 birth", "0 1 7 received", "1 0 3 birth")
    db = ask("nan/benign").table(
        "entries", ENTRIES, *(f"{place} a [inf] false" for place in places)
    )
    db.table("living", PLACES, *places)
    db.table("onsets", PLACES, *(place for place in places if place != "0 0 5 birth"))
    db.table("recovered_steps", "step recovered_at", "0 4")
    reason = "loss scale too high: the update was skipped, step 4 is finite"
    assert db.rows() == [(0, 0, 3, "a", ["inf"], reason), (0, 1, 7, "a", ["inf"], reason)]


def test_all_in_order(ask) -> None:
    db = ask("nan/benign").table(
        "entries",
        ENTRIES,
        "1 0 2 birth a [inf] true",
        "0 1 9 birth b [inf] true",
        "0 0 3 import c [inf] false",
    )
    db.table("living", PLACES, "0 0 3 import").table("onsets", PLACES, "0 0 3 import")
    db.table("recovered_steps", "step recovered_at", "0 1")
    assert db.rows("step rank seq") == [(0, 0, 3), (0, 1, 9), (1, 0, 2)]


def test_two_entries_of_one_call_in_order(ask) -> None:
    rows = ("0 0 3 import a [inf] true", "0 0 3 birth a [nan] false")
    for entries in (rows, rows[::-1]):
        db = ask("nan/benign").table("entries", ENTRIES, *entries)
        assert db.rows("found reason") == [(["inf"], GIVEN), (["nan"], DIED)]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/benign").rows() == []
