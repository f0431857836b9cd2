from __future__ import annotations

import pytest

CANDIDATES = "step rank seq kind entry"
ONSETS = "step rank seq entry"


def test_every_column_of_an_origin(ask) -> None:
    db = ask("nan/origins").table(
        "candidates",
        "step rank seq kind entry certainty found slots dtype phase name api module instance "
        "members brought group_size",
        "2 1 3 communication received order [inf] [output.0] float16 forward a.0 a mlp i "
        "[{'rank':1,'seq':3,'call':a.0}] 7e4 2",
    )
    assert db.rows() == [
        (
            *(0, 2, 1, 3, "communication", "received", "order", ["inf"], ["output.0"], "float16"),
            *("forward", "a.0", "a", "mlp", "i", [{"rank": 1, "seq": 3, "call": "a.0"}]),
            *(70000.0, 2),
        )
    ]


def test_numbered_in_order(ask) -> None:
    db = ask("nan/origins").table(
        "candidates",
        CANDIDATES,
        "1 0 2 compute birth",
        "0 1 5 input import",
        "0 1 5 compute birth",
        "0 0 9 compute birth",
        "0 1 4 compute birth",
    )
    db.table("onsets", ONSETS, "0 0 9 birth")
    assert db.rows("origin step rank seq entry") == [
        (0, 0, 0, 9, "birth"),
        (1, 0, 1, 4, "birth"),
        (2, 0, 1, 5, "birth"),
        (3, 0, 1, 5, "import"),
        (4, 1, 0, 2, "birth"),
    ]


def test_two_instances_of_one_call_are_numbered_in_order(ask) -> None:
    columns = CANDIDATES + " instance"
    rows = (f"0 0 3 communication received {instance}" for instance in "jki")
    db = ask("nan/origins").table("candidates", columns, *rows)
    assert db.rows("origin instance") == [(0, "i"), (1, "j"), (2, "k")]


def test_steps_that_recovered_are_left_out(ask) -> None:
    db = ask("nan/origins")
    db.table("candidates", CANDIDATES, "0 0 3 compute birth", "1 0 3 compute birth")
    db.table("onsets", ONSETS, "0 0 3 birth", "1 0 3 birth")
    assert db.table("recovered_steps", "step recovered_at", "0 2").rows("origin step") == [(0, 1)]


def test_bad_weights_after_a_step_that_went_bad_are_a_consequence(ask) -> None:
    db = ask("nan/origins").table(
        "candidates",
        CANDIDATES,
        "1 0 3 compute birth",
        "2 0 3 parameter import",
        "2 1 3 optimizer import",
    )
    db.table("onsets", ONSETS, "1 0 3 birth", "2 0 3 import", "2 1 3 import")
    assert db.rows("step rank") == [(1, 0)]


def test_a_step_that_went_bad_by_what_it_received_spoils_weights_too(ask) -> None:
    db = ask("nan/origins").table("candidates", CANDIDATES, "2 0 3 parameter import")
    db.table("onsets", ONSETS, "1 0 3 received", "2 0 3 import")
    assert db.rows() == []


@pytest.mark.parametrize(
    "candidate",
    [
        "2 0 3 input import",
        "2 0 3 compute birth",
        "2 0 3 optimizer birth",
        "2 0 3 gap lost",
        "2 0 3 uninitialized uninitialized",
        "2 0 3 communication received",
        "2 0 3 compute saturated",
        "1 0 3 parameter import",
        "1 0 3 optimizer import",
    ],
)
def test_what_is_no_consequence_of_an_earlier_step(ask, candidate: str) -> None:
    db = ask("nan/origins").table("candidates", CANDIDATES, candidate)
    db.table("onsets", ONSETS, "1 0 3 birth", "2 0 3 birth")
    assert db.rows("step") == [(int(candidate[0]),)]


def test_a_step_that_recovered_spoilt_no_weights(ask) -> None:
    db = ask("nan/origins").table("candidates", CANDIDATES, "2 0 3 parameter import")
    db.table("onsets", ONSETS, "0 0 3 birth", "2 0 3 import")
    db.table("recovered_steps", "step recovered_at", "0 1")
    assert db.rows("origin step kind") == [(0, 2, "parameter")]


def test_a_saturated_result_where_nothing_is_bad(ask) -> None:
    db = ask("nan/origins").table("candidates", CANDIDATES, "0 0 3 compute saturated")
    assert db.rows("origin step entry") == [(0, 0, "saturated")]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/origins").rows() == []
