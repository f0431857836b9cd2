from __future__ import annotations

from math import inf

import pytest

CALLS = "step rank seq kind api"
TENSORS = "step rank seq slot direction role numel max min has_nan has_posinf has_neginf"


def test_every_column_of_a_bad_tensor(ask) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "2 1 7 compute linear")
    db.table(
        "tensors",
        TENSORS + " dtype requires_grad value_id producer_seq producer_slot",
        "2 1 7 input.1 input value 6 3.5 -1.5 false true false bfloat16 true 40 5 output.0",
    )
    columns = (
        "step rank seq kind slot is_read is_parameter allocated requires_grad nan posinf neginf "
        "high low numel dtype value_id producer_seq producer_slot"
    )
    read = (2, 1, 7, "compute", "input.1", True, False, False, True, False, True, False, inf, -1.5)
    assert db.rows(columns) == [(*read, 6, "bfloat16", 40, 5, "output.0")]


def test_what_a_call_reads_and_what_it_makes(ask) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute add", "0 0 4 module Mlp", "0 1 3 module Mlp")
    db.table(
        "tensors",
        TENSORS,
        "0 0 3 input.0 input value 4 - - true false false",
        "0 0 3 output.0 output value 4 - - true false false",
        "0 1 3 parameters.weight parameter value 4 - - true false false",
        "0 1 3 gradient.weight gradient value 4 - - true false false",
    )
    assert db.rows("rank slot is_read") == [
        (0, "input.0", True),
        (0, "output.0", False),
        (1, "gradient.weight", False),
        (1, "parameters.weight", True),
    ]


def test_finite_and_not_recorded_tensors_are_left_out(ask) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute add")
    db.table(
        "tensors",
        TENSORS,
        "0 0 3 input.0 input value 4 1 0 false false false",
        "0 0 3 input.1 input value 4 - - - - -",
        "0 0 3 input.2 input value 4 1 0 - false -",
    )
    assert db.rows() == []


@pytest.mark.parametrize(
    ("found", "flags"),
    [
        ("true - -", (True, False, False)),
        ("- true -", (False, True, False)),
        ("- - true", (False, False, True)),
        ("false true true", (False, True, True)),
    ],
)
def test_what_is_not_recorded_is_not_claimed(ask, found: str, flags: tuple[bool, ...]) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute add")
    db.table("tensors", TENSORS, f"0 0 3 output.0 output value 4 1 0 {found}")
    assert db.rows("nan posinf neginf") == [flags]


@pytest.mark.parametrize(
    ("statistics", "high", "low"),
    [
        ("2 -1 true false false", 2.0, -1.0),
        ("2 -1 false true false", inf, -1.0),
        ("2 -1 false false true", 2.0, -inf),
        ("2 -1 false true true", inf, -inf),
        ("- - false true false", inf, inf),
        ("- - false false true", -inf, -inf),
        ("- - true false false", -inf, inf),
    ],
)
def test_range_has_the_infinities_and_no_finite_value_at_all_turns_it_round(
    ask, statistics: str, high: float, low: float
) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute add")
    db.table("tensors", TENSORS, f"0 0 3 output.0 output value 4 {statistics}")
    assert db.rows("high low") == [(high, low)]


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ("4 2 -1 true - -", True),
        ("5 2 -1 true - -", False),
        ("4 3 -1 true - -", False),
        ("4 2 -2 true - -", False),
        ("4 2 -1 false true -", False),
        ("4 2 -1 true true -", False),
    ],
)
def test_likeness_tells_which_tensors_may_be_one_value(ask, other: str, alike: bool) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute add", "0 0 4 compute mul")
    db.table(
        "tensors",
        TENSORS,
        "0 0 3 output.0 output value 4 2 -1 true - -",
        f"0 0 4 input.0 input value {other}",
    )
    (made,), (read,) = db.rows("likeness")
    assert (made == read) is alike


def test_tensors_of_different_ranks_or_steps_are_not_alike(ask) -> None:
    places = ("0 0 3", "0 1 3", "1 0 3", "1 1 3")
    db = ask("nan/bad_tensors").table("calls", CALLS, *(f"{p} compute add" for p in places))
    db.table("tensors", TENSORS, *(f"{p} output.0 output value 4 2 -1 true - -" for p in places))
    assert len(set(db.rows("likeness"))) == 4


@pytest.mark.parametrize(
    ("kind", "slot", "rows"),
    [
        ("compute", "input.out input buffer", []),
        ("compute", "output.0 output buffer", [("output.0", True)]),
        ("comm", "input.0 input buffer", []),
        ("comm", "output.0 output buffer", []),
        ("comm", "output.1 output echo", []),
        ("comm", "output.0 output value", [("output.0", False)]),
    ],
)
def test_buffers_are_neither_read_nor_received(ask, kind: str, slot: str, rows: list) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, f"0 0 3 {kind} irecv")
    db.table("tensors", TENSORS, f"0 0 3 {slot} 4 - - true - -")
    assert db.rows("slot allocated") == rows


def test_memory_that_was_only_reserved_is_allocated_by_name(ask) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute empty", "0 0 4 compute zeros", "0 0 5 compute -")
    db.table(
        "tensors",
        TENSORS,
        "0 0 3 output.0 output value 4 - - true - -",
        "0 0 4 output.0 output value 4 - - true - -",
        "0 0 5 output.0 output value 4 - - true - -",
    )
    assert db.rows("seq allocated") == [(3, True), (4, False), (5, False)]


@pytest.mark.parametrize("slot", ["input.0", "input.input", "input.self"])
def test_first_tensor_of_a_call_that_leaves_its_values_unread(ask, slot: str) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute copy_")
    db.table(
        "tensors",
        TENSORS,
        f"0 0 3 {slot} input value 4 - - true - -",
        "0 0 3 input.1 input value 4 - - true - -",
        "0 0 3 output.0 output value 4 - - true - -",
    )
    assert db.rows("slot") == [("input.1",), ("output.0",)]


def test_modules_where_nothing_else_is_on_record(ask) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 module Mlp", "0 1 3 module Mlp", "0 1 4 compute add")
    db.table(
        "tensors",
        TENSORS,
        "0 0 3 output.0 output value 4 - - true - -",
        "0 1 3 output.0 output value 4 - - true - -",
        "0 1 4 output.0 output value 4 - - true - -",
    )
    assert db.rows("rank seq") == [(0, 3), (1, 4)]


def test_modules_beside_a_saved_variable(ask) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 module Mlp", "0 0 4 saved x")
    db.table("tensors", TENSORS, "0 0 3 output.0 output value 4 - - true - -")
    assert db.rows("seq") == [(3,)]


@pytest.mark.parametrize(
    ("call", "slot", "parameter"),
    [
        ("module Mlp", "parameters.weight parameter", True),
        ("compute add_", "input.0 parameter", True),
        ("compute linear", "input.1 input", False),
        ("module Mlp", "gradient.weight gradient", False),
        ("compute linear", "output.1 output", False),
    ],
)
def test_which_tensors_are_parameters(ask, call: str, slot: str, parameter: bool) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, f"0 0 3 {call}")
    db.table("tensors", TENSORS, f"0 0 3 {slot} value 4 - - true - -")
    assert db.rows("is_parameter") == [(parameter,)]


def test_each_has_the_kind_of_its_call(ask) -> None:
    places = "0 0 3 comm", "0 0 4 saved", "0 1 3 optimizer", "1 0 3 module"
    db = ask("nan/bad_tensors").table("calls", "step rank seq kind", *places)
    tensors = (f"{place[:5]} output.0 output value 4 - - true - -" for place in places)
    db.table("tensors", TENSORS, *tensors)
    assert db.rows("step rank seq kind") == [
        (0, 0, 3, "comm"),
        (0, 0, 4, "saved"),
        (0, 1, 3, "optimizer"),
        (1, 0, 3, "module"),
    ]


def test_requires_grad_that_is_not_recorded_stays_unknown(ask) -> None:
    db = ask("nan/bad_tensors")
    db.table("calls", CALLS, "0 0 3 compute log")
    db.table("tensors", TENSORS, "0 0 3 output.0 output value 4 - - true - -")
    assert db.rows("requires_grad") == [(None,)]


def test_nan_alone(ask) -> None:
    db = ask("nan/bad_tensors", nan_only=True)
    db.table("calls", CALLS, "0 0 3 compute add")
    db.table(
        "tensors",
        TENSORS,
        "0 0 3 input.0 input value 4 2 -1 false true true",
        "0 0 3 input.1 input value 4 2 -1 true true true",
        "0 0 3 input.2 input value 4 2 -1 - true true",
    )
    assert db.rows("slot nan posinf neginf high low") == [
        ("input.1", True, False, False, 2.0, -1.0)
    ]


def test_nothing_on_record_gives_nothing(ask) -> None:
    assert ask("nan/bad_tensors").rows() == []
