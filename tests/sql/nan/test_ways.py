from __future__ import annotations

import pytest

EDGES = "rank producer_step producer_seq producer_likeness step seq fate"
PURPOSE = "step rank seq manner"


def test_ways_into_calls_with_a_bad_result(ask) -> None:
    db = ask("nan/ways").table(
        "edges",
        EDGES,
        "0 0 3 77 0 5 carries",
        "0 0 3 77 0 6 absorbs",
        "0 0 3 77 0 7 sends",
        "1 0 3 77 1 5 carries",
    )
    assert db.rows() == [(0, 0, 3, 0, 5), (1, 0, 3, 1, 5)]


def test_two_values_of_one_call_take_one_way(ask) -> None:
    db = ask("nan/ways").table("edges", EDGES, "0 0 3 77 0 5 carries", "0 0 3 78 0 5 carries")
    assert db.rows() == [(0, 0, 3, 0, 5)]


@pytest.mark.parametrize(
    ("purpose", "rows"),
    [
        ("0 0 5 turned", []),
        ("0 0 5 kept", [(0, 0, 3, 0, 5)]),
        ("0 0 3 turned", [(0, 0, 3, 0, 5)]),
        ("0 1 5 turned", [(0, 0, 3, 0, 5)]),
        ("1 0 5 turned", [(0, 0, 3, 0, 5)]),
    ],
)
def test_no_way_leads_into_the_call_that_turned_an_infinity(ask, purpose: str, rows: list) -> None:
    db = ask("nan/ways").table("edges", EDGES, "0 0 3 77 0 5 carries")
    assert db.table("on_purpose", PURPOSE, purpose).rows() == rows


def test_no_edge_gives_no_way(ask) -> None:
    assert ask("nan/ways").rows() == []
