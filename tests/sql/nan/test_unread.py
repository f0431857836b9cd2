from __future__ import annotations

from math import inf

import pytest

BAD = "step rank seq slot is_read allocated requires_grad nan posinf neginf high low numel likeness"
EDGES = "rank producer_step producer_seq producer_likeness step seq fate"
RESULT = "0 0 3 output.0 false false"
NAN = "false true false false 3 -2 4 77"


def unread(ask, *edges: str, results: tuple[str, ...] = (f"{RESULT} {NAN}",)):
    return ask("nan/unread").table("bad_tensors", BAD, *results).table("edges", EDGES, *edges)


def test_every_column_of_a_result_that_nobody_reads(ask) -> None:
    db = unread(ask, results=("2 1 7 output.1 false false true false true false inf -1.5 6 77",))
    assert db.rows() == [(2, 1, 7, "output.1", True, False, True, False, inf, -1.5, 6)]


@pytest.mark.parametrize("fate", ["carries", "absorbs", "sends"])
@pytest.mark.parametrize("place", ["0 5", "1 2"], ids=["in its step", "in a later step"])
def test_not_a_result_that_somebody_reads(ask, place: str, fate: str) -> None:
    assert unread(ask, f"0 0 3 77 {place} {fate}").rows() == []


@pytest.mark.parametrize(
    "edge",
    [
        "0 0 3 78 0 5 carries",
        "0 0 2 77 0 5 carries",
        "1 0 3 77 0 5 carries",
        "0 1 3 77 1 5 carries",
    ],
    ids=["another result", "another call", "another rank", "another step"],
)
def test_a_result_beside_what_is_read(ask, edge: str) -> None:
    assert unread(ask, edge).rows("step rank seq slot") == [(0, 0, 3, "output.0")]


def test_one_result_of_two(ask) -> None:
    other = f"0 0 3 output.1 false false {NAN[:-2]}78"
    db = unread(ask, "0 0 3 77 0 5 carries", results=(f"{RESULT} {NAN}", other))
    assert db.rows("slot") == [("output.1",)]


def test_two_results_alike_cannot_be_told_apart(ask) -> None:
    results = f"{RESULT} {NAN}", f"0 0 3 output.1 false false {NAN}"
    assert unread(ask, results=results).rows("slot") == [("output.0",), ("output.1",)]
    assert unread(ask, "0 0 3 77 0 5 carries", results=results).rows() == []


@pytest.mark.parametrize("tensor", ["input.0 true false", "output.0 false true"])
def test_neither_what_is_read_nor_what_is_only_reserved(ask, tensor: str) -> None:
    assert unread(ask, results=(f"0 0 3 {tensor} {NAN}",)).rows() == []


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/unread").rows() == []
