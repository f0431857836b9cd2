from __future__ import annotations

import pytest

CALLS = "step rank seq kind name api phase module args"
TENSORS = "step rank seq slot direction role dtype saturated has_nan has_posinf has_neginf"
CALL = "0 0 3 compute Torch.mul.0.forward mul forward mlp -"
READ = "0 0 3 input.0 input value float16 false false false false"
MADE = "0 0 3 output.0 output value float16 true false false false"


def ask_for(ask, *tensors: str, calls: tuple[str, ...] = (CALL,), **params: bool):
    """Return the question for these calls and tensors, those at their limit told apart."""
    at_limit = [tensor.split()[:7] for tensor in tensors if tensor.split()[7] == "true"]
    db = ask("nan/saturations", **params).table("calls", CALLS, *calls)
    db.table("saturated", " ".join(TENSORS.split()[:7]), *map(" ".join, at_limit))
    return db.table("tensors", TENSORS, *tensors)


def test_a_result_at_the_limit_out_of_values_below_it(ask) -> None:
    assert ask_for(ask, READ, MADE).rows() == [
        (0, 0, 3, ["output.0"], "float16", "Torch.mul.0.forward", "mul", "forward", "mlp")
    ]


def test_all_its_results_at_the_limit(ask) -> None:
    second = MADE.replace("output.0", "output.1")
    finite = MADE.replace("output.0", "output.2").replace("true", "false")
    assert ask_for(ask, READ, second, MADE, finite).rows("slots") == [(["output.0", "output.1"],)]


def test_the_first_of_each_step_and_rank(ask) -> None:
    places = ["0 0 5", "0 0 3", "0 1 4", "1 0 2"]
    calls = tuple(CALL.replace("0 0 3", place, 1) for place in places)
    tensors = [row.replace("0 0 3", place) for place in places for row in (READ, MADE)]
    db = ask_for(ask, *tensors, calls=calls)
    assert db.rows("step rank seq") == [(0, 0, 3), (0, 1, 4), (1, 0, 2)]


@pytest.mark.parametrize("saturated", ["false", "-"], ids=["below", "not recorded"])
def test_not_a_result_below_the_limit(ask, saturated: str) -> None:
    assert ask_for(ask, READ, MADE.replace("true", saturated, 1)).rows() == []


@pytest.mark.parametrize(
    "read",
    [
        "0 0 3 input.1 input value float16 true false false false",
        "0 0 3 input.1 input value float16 - true - -",
        "0 0 3 input.1 input value float16 - false true false",
        "0 0 3 input.1 input value float16 - false false true",
    ],
)
def test_not_when_what_was_read_stood_there_or_beyond(ask, read: str) -> None:
    assert ask_for(ask, READ, read, MADE).rows() == []


def test_not_when_it_is_not_recorded_what_was_read(ask) -> None:
    assert ask_for(ask, MADE).rows() == []


def test_integers_among_what_was_read_have_no_limit(ask) -> None:
    index = "0 0 3 input.1 input value int64 - - - -"
    assert ask_for(ask, READ, index, MADE).rows("seq") == [(3,)]


@pytest.mark.parametrize("role", ["buffer", "echo"])
def test_not_what_is_no_result(ask, role: str) -> None:
    assert ask_for(ask, READ, MADE.replace("value", role)).rows() == []


@pytest.mark.parametrize(
    ("value", "rows"),
    [("-65504.0", []), ("-1e+30", []), ("-65503.0", [(3,)]), ('"65504"', [(3,)])],
)
def test_not_a_limit_that_the_caller_passed(ask, value: str, rows: list) -> None:
    call = CALL[:-1] + f'{{"input.1":{{"type":"float","value":{value}}}}}'
    assert ask_for(ask, READ, MADE, calls=(call,)).rows("seq") == rows


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn_x2"])
def test_not_the_formats_of_8_bits_and_fewer_which_fill_their_range_on_purpose(
    ask, dtype: str
) -> None:
    assert ask_for(ask, READ, MADE.replace("float16", dtype)).rows() == []


@pytest.mark.parametrize("kind", ["comm", "module", "saved"])
def test_a_computation_alone_not_what_else_gave_the_result(ask, kind: str) -> None:
    calls = (CALL.replace("compute", kind),)
    assert ask_for(ask, READ, MADE, calls=calls).rows() == []


def test_nan_alone_has_no_limit(ask) -> None:
    assert ask_for(ask, READ, MADE, nan_only=True).rows() == []


def test_nothing_on_record_gives_nothing(ask) -> None:
    assert ask("nan/saturations").rows() == []
