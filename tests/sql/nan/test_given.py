from __future__ import annotations

import pytest

MINUS_INF = '{"input.1":{"type":"float","value":"-inf"}}'
FINITE = '{"input.1":{"type":"float","value":-3.4e+38}}'
BAD = "step rank seq reads_bad makes_bad made_nan"
MADE = "false true false"


def given(ask, args: str, call: str = MADE, place: str = "0 0 1"):
    """Return the question for call 1 of rank 0 in step 0, and what is on record of `place`."""
    db = ask("nan/given").table("bad_calls", BAD, f"0 0 1 {call}")
    return db.table("calls", "step rank seq args", f"{place} {args}")


def test_every_column_of_an_infinity_out_of_an_infinite_argument(ask) -> None:
    db = ask("nan/given").table("bad_calls", BAD, f"2 1 7 {MADE}")
    assert db.table("calls", "step rank seq args", f"2 1 7 {MINUS_INF}").rows() == [(2, 1, 7)]


@pytest.mark.parametrize("args", [FINITE, "-"], ids=["finite", "not recorded"])
def test_not_without_an_infinite_argument(ask, args: str) -> None:
    assert given(ask, args).rows() == []


@pytest.mark.parametrize(
    "call",
    ["false true true", "true true false", "false false false"],
    ids=["it made NaN too", "it read an infinity", "memory only reserved"],
)
def test_not_an_infinity_that_may_come_from_elsewhere(ask, call: str) -> None:
    assert given(ask, MINUS_INF, call).rows() == []


@pytest.mark.parametrize("place", ["0 0 2", "0 1 1", "1 0 1"])
def test_not_by_the_argument_of_another_call(ask, place: str) -> None:
    assert given(ask, MINUS_INF, place=place).rows() == []


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/given").rows() == []
