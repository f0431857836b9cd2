from __future__ import annotations

import pytest

PLACES = "step rank seq entry"
ENTRIES = "step rank seq entry name weight"
SPREAD = "origin step rank"


def spoilt(
    ask,
    *,
    entry: str = "import",
    weight: str = "true",
    spread: tuple[str, ...] = ("0 0 2",),
    origins: tuple[str, ...] = (),
    recovered: tuple[str, ...] = (),
    onsets: tuple[str, ...] = (),
):
    """Return the question where rank 1 read a bad weight first in step 1."""
    db = ask("nan/consequences").table("onsets", PLACES, f"1 1 3 {entry}", *onsets)
    db.table("entries", ENTRIES, f"1 1 3 {entry} linear.0 {weight}")
    db.table("spread", SPREAD, *spread)
    db.table("origins", PLACES, *origins)
    return db.table("recovered_steps", "step recovered_at", *recovered)


@pytest.mark.parametrize("entry", ["import", "carried"])
def test_weights_that_an_earlier_step_spoilt_unseen(ask, entry: str) -> None:
    assert spoilt(ask, entry=entry).rows() == [(1, 1, 3, "linear.0", 0, True)]


def test_weights_that_an_origin_on_record_came_to(ask) -> None:
    assert spoilt(ask, spread=("0 0 1",)).rows() == [(1, 1, 3, "linear.0", 0, False)]


def test_an_origin_that_came_to_another_rank_only_is_unseen_here(ask) -> None:
    assert spoilt(ask, spread=("0 0 2", "0 0 0")).rows("unseen") == [(True,)]


@pytest.mark.parametrize("entry", "birth turned saved received lost uninitialized".split())
def test_not_what_began_in_the_step_itself(ask, entry: str) -> None:
    assert spoilt(ask, entry=entry).rows() == []


def test_not_what_is_an_origin_of_its_own(ask) -> None:
    assert spoilt(ask, origins=("1 1 3 import",)).rows() == []


@pytest.mark.parametrize("other", ["1 1 3 birth", "1 1 4 import", "1 2 3 import", "0 1 3 import"])
def test_an_origin_elsewhere_does_not_matter(ask, other: str) -> None:
    assert spoilt(ask, origins=(other,)).rows("origin") == [(0,)]


def test_not_in_a_step_that_recovered(ask) -> None:
    assert spoilt(ask, recovered=("1 2",)).rows() == []
    assert spoilt(ask, recovered=("0 2",)).rows("step") == [(1,)]


@pytest.mark.parametrize("spread", [(), ("0 1 2",), ("0 2 2",), ("0 1 1",)])
def test_not_without_an_origin_in_an_earlier_step(ask, spread: tuple[str, ...]) -> None:
    assert spoilt(ask, spread=spread).rows() == []


@pytest.mark.parametrize(
    ("spread", "origin", "unseen"),
    [
        (("0 0 2", "1 0 3", "1 0 1"), 1, False),
        (("0 0 2", "1 0 3", "0 0 1"), 0, False),
        (("0 -2 2", "1 -1 3"), 1, True),
        (("0 -2 2", "1 -1 3", "0 -2 1"), 0, False),
        (("0 -2 2", "1 -1 3", "0 -2 1", "1 -1 1"), 1, False),
        (("0 0 2", "1 0 3"), 0, True),
        (("0 0 2", "1 1 3", "1 1 1"), 0, True),
    ],
    ids=[
        "the one that came here",
        "whichever",
        "the latest step",
        "an earlier one that came here",
        "the latest that came here",
        "the first of a step",
        "none of the same step",
    ],
)
def test_the_origin_that_it_is_a_consequence_of(
    ask, spread: tuple[str, ...], origin: int, unseen: bool
) -> None:
    assert spoilt(ask, spread=spread).rows("origin unseen") == [(origin, unseen)]


@pytest.mark.parametrize(
    ("onset", "unseen"),
    [
        ("0 1 5 received", False),
        ("-1 1 5 received", True),
        ("1 1 5 received", True),
        ("2 1 5 received", True),
        ("0 2 5 received", True),
    ],
    ids=["of the origin's step", "before it", "of this step", "after it", "of another rank"],
)
def test_not_unseen_where_a_bad_value_came_to_the_rank_in_between(
    ask, onset: str, unseen: bool
) -> None:
    assert spoilt(ask, onsets=(onset,)).rows("step origin unseen") == [(1, 0, unseen)]


def test_in_between_may_be_any_step(ask) -> None:
    between = "-1 1 5 birth"
    assert spoilt(ask, spread=("0 -3 2",)).rows("unseen") == [(True,)]
    assert spoilt(ask, spread=("0 -3 2",), onsets=(between,)).rows("unseen") == [(False,)]


def test_several_bad_values_in_between_give_one_row(ask) -> None:
    onsets = "-2 1 5 birth", "-1 1 5 birth", "0 1 5 birth"
    db = spoilt(ask, spread=("0 -3 2", "1 -2 0"), onsets=onsets)
    assert db.rows("origin unseen") == [(1, False)]


def test_an_origin_that_came_to_several_ranks_gives_one_row(ask) -> None:
    db = spoilt(ask, spread=("0 0 0", "0 0 1", "0 0 2"))
    assert db.rows("origin unseen") == [(0, False)]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/consequences").rows() == []
