from __future__ import annotations

import pytest

BAD = (
    "step rank seq slot is_read allocated is_parameter requires_grad nan posinf neginf numel dtype"
)
CALLS = "step rank seq kind reads_bad makes_bad"
READS = "step rank seq slot source producer_step producer_seq"


def test_every_column_of_an_entry(ask) -> None:
    db = ask("nan/entry_tensors").table("bad_calls", CALLS, "2 1 3 compute false true")
    db.table("bad_tensors", BAD, "2 1 3 output.0 false false false true true false true 6 float16")
    assert db.rows() == [(2, 1, 3, "birth", "output.0", True, False, True, 6, "float16", False)]


def made(ask, call: str, *, manner: str = "", tensor: str = "output.0 false false"):
    """Return the question for call 3, which makes NaN."""
    db = ask("nan/entry_tensors").table("bad_calls", CALLS, f"0 0 3 {call}")
    db.table("bad_tensors", BAD, f"0 0 3 {tensor} false false true false false 4 float32")
    if manner:
        db.table("on_purpose", "step rank seq manner", f"0 0 3 {manner}")
    return db


@pytest.mark.parametrize(
    ("call", "manner", "entry"),
    [
        ("compute false true", "", "birth"),
        ("module false true", "", "birth"),
        ("optimizer false true", "", "birth"),
        ("compute false true", "given", "birth"),
        ("compute true true", "turned", "turned"),
        ("saved false true", "", "saved"),
        ("comm false true", "", "received"),
        ("comm true true", "", "received"),
    ],
)
def test_how_a_result_came_to_be_bad(ask, call: str, manner: str, entry: str) -> None:
    assert made(ask, call, manner=manner).rows("entry slot") == [(entry, "output.0")]


@pytest.mark.parametrize("manner", ["", "kept"])
def test_a_bad_result_of_what_was_read_is_no_entry(ask, manner: str) -> None:
    assert made(ask, "compute true true", manner=manner).rows() == []


@pytest.mark.parametrize("kind", ["compute", "comm"])
def test_memory_that_was_only_reserved_is_no_entry(ask, kind: str) -> None:
    db = made(ask, f"{kind} false false", tensor="output.0 false true")
    assert db.rows() == []


def read(
    ask,
    source: str,
    *,
    slot: str = "input.0",
    marks: str = "false false",
    numel: str = "4",
    api: str = "-",
    phase: str = "forward",
):
    """Return the question for call 5 of step 1, which reads NaN.

    Args:
        marks: whether what it reads is a parameter, and requires a gradient.
    """
    db = ask("nan/entry_tensors").table("bad_calls", CALLS, "1 0 5 compute true true")
    db.table("calls", "step rank seq api phase", f"1 0 5 {api} {phase}")
    db.table(
        "bad_tensors",
        BAD,
        f"1 0 5 {slot} true false {marks} true false false {numel} float32",
        "1 0 5 output.0 false false false false true false false 4 float32",
    )
    return db.table("bad_reads", READS, f"1 0 5 {slot} {source}")


@pytest.mark.parametrize(
    ("source", "entry"),
    [
        ("unmade - -", "import"),
        ("lost 1 3", "lost"),
        ("lost 0 3", "lost"),
        ("allocated 1 3", "uninitialized"),
        ("allocated 0 3", "uninitialized"),
        ("made 0 3", "carried"),
    ],
)
def test_where_a_bad_read_came_from(ask, source: str, entry: str) -> None:
    assert read(ask, source).rows() == [
        (1, 0, 5, entry, "input.0", True, False, False, 4, "float32", False)
    ]


def test_what_was_made_in_the_same_step_is_no_entry(ask) -> None:
    assert read(ask, "made 1 3").rows() == []


def test_a_communication_call_may_read_one_and_receive_one(ask) -> None:
    db = ask("nan/entry_tensors").table("bad_calls", CALLS, "0 0 3 comm true true")
    db.table("calls", "step rank seq phase", "0 0 3 forward")
    db.table(
        "bad_tensors",
        BAD,
        "0 0 3 input.0 true false false false true false false 4 float32",
        "0 0 3 output.0 false false false false true false false 4 float32",
    )
    db.table("bad_reads", READS, "0 0 3 input.0 unmade - -")
    assert db.rows("entry slot") == [("import", "input.0"), ("received", "output.0")]


@pytest.mark.parametrize(("marks", "weight"), [("false false", False), ("true false", True)])
def test_a_parameter_is_a_weight(ask, marks: str, weight: bool) -> None:
    assert read(ask, "unmade - -", marks=marks).rows("weight") == [(weight,)]


@pytest.mark.parametrize(
    ("api", "slot", "weight"),
    [
        ("linear", "input.1", True),
        ("linear", "input.0", False),
        ("-", "input.1", False),
        ("-", "input.weight", True),
    ],
)
@pytest.mark.parametrize("marks", ["false false", "false -"])
def test_a_weight_by_its_slot(ask, api: str, slot: str, marks: str, weight: bool) -> None:
    db = read(ask, "unmade - -", api=api, slot=slot, marks=marks)
    assert db.rows("slot weight") == [(slot, weight)]


def with_shapes(ask, shape: str, result: str, *, marks: str = "false true", **how: str):
    """Return the question for a read that requires a gradient, and the shapes on record."""
    return read(ask, "unmade - -", marks=marks, **how).table(
        "tensors",
        "step rank seq slot direction shape",
        f"1 0 5 input.0 input {shape}",
        f"1 0 5 output.0 output {result}",
    )


@pytest.mark.parametrize(
    ("shape", "result", "weight"),
    [
        ("[16,8]", "[4,16]", True),
        ("[8]", "[4,8]", True),
        ("[4,8]", "[4,8]", False),
        ("[4,8]", "[4,16]", False),
        ("[]", "[]", False),
    ],
)
def test_what_requires_a_gradient_and_is_not_shaped_like_the_result(
    ask, shape: str, result: str, weight: bool
) -> None:
    assert with_shapes(ask, shape, result).rows("weight") == [(weight,)]


def test_what_requires_no_gradient_is_no_weight_whatever_its_shape(ask) -> None:
    assert with_shapes(ask, "[16,8]", "[4,16]", marks="false false").rows("weight") == [(False,)]


def test_what_is_not_known_to_require_a_gradient_is_no_weight_by_its_shape(ask) -> None:
    assert with_shapes(ask, "[16,8]", "[4,16]", marks="false -").rows("weight") == [(False,)]
    db = with_shapes(ask, "[16,8]", "[16,8]", marks="false -", phase="optimizer")
    assert db.rows("weight") == [(False,)]


def test_what_an_optimizer_updates_is_shaped_like_the_result(ask) -> None:
    db = with_shapes(ask, "[16,8]", "[16,8]", phase="optimizer")
    assert db.rows("weight") == [(True,)]


def test_a_shape_that_is_not_recorded_is_not_like_the_result(ask) -> None:
    assert with_shapes(ask, "-", "[4,8]").rows("weight") == [(True,)]


PARAMETER = "step rank seq slot direction numel has_nan has_posinf has_neginf"


@pytest.mark.parametrize(
    ("tensor", "weight"),
    [
        ("1 0 9 parameters.weight parameter 4 true - -", True),
        ("1 0 9 parameters.weight parameter 4 false true false", True),
        ("1 0 9 parameters.weight parameter 4 false false true", True),
        ("1 0 9 parameters.weight parameter 4 false false false", False),
        ("1 0 9 parameters.weight parameter 4 - - -", False),
        ("1 0 9 parameters.weight parameter 5 true - -", False),
        ("1 1 9 parameters.weight parameter 4 true - -", False),
        ("0 0 9 parameters.weight parameter 4 true - -", False),
        ("1 0 9 input.0 input 4 true - -", False),
    ],
)
def test_a_weight_as_a_bad_parameter_of_its_size(ask, tensor: str, weight: bool) -> None:
    db = read(ask, "unmade - -").table("tensors", PARAMETER, tensor)
    assert db.rows("weight") == [(weight,)]


def test_a_size_that_is_not_recorded_matches_no_parameter(ask) -> None:
    db = read(ask, "unmade - -", numel="-")
    db.table("tensors", PARAMETER, "1 0 9 parameters.weight parameter - true - -")
    assert db.rows("weight") == [(False,)]


def test_a_result_is_no_weight(ask) -> None:
    db = ask("nan/entry_tensors").table("bad_calls", CALLS, "0 0 3 compute false true")
    db.table("calls", "step rank seq api", "0 0 3 linear")
    db.table("bad_tensors", BAD, "0 0 3 output.1 false false false true true false false 4 float32")
    db.table("tensors", PARAMETER, "0 0 9 parameters.weight parameter 4 true - -")
    assert db.rows("weight") == [(False,)]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/entry_tensors").rows() == []
