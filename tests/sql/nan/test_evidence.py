from __future__ import annotations

import pytest

CALLS = "step rank seq name module stack"
TENSORS = "step rank seq slot direction role dtype shape max min has_nan has_posinf has_neginf"
FORWARD = "0 0 3 Torch.log.0.forward mlp a.py:7"
BACKWARD = "0 0 9 Torch.log.0.backward - -"


def evidence(ask, *calls: str, wanted: tuple[str, ...] = ("0 0 3",)):
    """Return the question for these calls and those of them that it asks about."""
    db = ask("nan/evidence").table("calls", CALLS, *calls)
    return db.table("wanted", "step rank seq", *wanted)


def tensor(slot: str, direction: str, **values) -> dict:
    """Return one tensor as a reader sees it: float32[2], finite, from -1 to 1, unless given."""
    shown = {"dtype": "float32", "shape": [2], "max": 1.0, "min": -1.0, "found": []}
    return {"slot": slot, "direction": direction, **shown, **values}


def test_call_and_tensors(ask) -> None:
    db = evidence(ask, FORWARD).table(
        "tensors",
        TENSORS,
        "0 0 3 output.0 output value float16 [2,3] 4 0.5 true true true",
        "0 0 3 input.1 input value float32 [2] 1 -1 false false false",
        "0 0 3 input.0 input value float32 [2] 1 -1 - - -",
    )
    values = {"dtype": "float16", "shape": [2, 3], "max": 4.0, "min": 0.5}
    tensors = [
        tensor("input.0", "input"),
        tensor("input.1", "input"),
        tensor("output.0", "output", **values, found=["nan", "inf", "-inf"]),
    ]
    assert db.rows() == [(0, 0, 3, "mlp", "a.py:7", tensors)]


def test_values_alone_are_shown(ask) -> None:
    db = evidence(ask, FORWARD).table(
        "tensors",
        TENSORS,
        "0 0 3 input.0 input buffer float32 [2] 1 -1 - - -",
        "0 0 3 output.0 output echo float32 [2] 1 -1 - - -",
        "0 0 4 output.0 output value float32 [2] 1 -1 - - -",
        "0 1 3 output.0 output value float32 [2] 1 -1 - - -",
        "1 0 3 output.0 output value float32 [2] 1 -1 - - -",
    )
    assert db.rows("seq tensors") == [(3, None)]


def test_what_is_not_recorded_stays_unknown(ask) -> None:
    assert evidence(ask, "0 0 3 - - -").rows() == [(0, 0, 3, None, None, None)]


def test_each_call_that_is_asked_about_has_its_own(ask) -> None:
    places = "0 0 3", "0 0 5", "0 1 3", "1 0 3"
    db = evidence(
        ask,
        *(f"{place} a.{n} m{n} s{n}" for n, place in enumerate(places)),
        "0 0 4 other m s",
        wanted=places,
    )
    tensors = (f"{p} input.{n} input value float32 [2] 1 -1 - - -" for n, p in enumerate(places))
    assert db.table("tensors", TENSORS, *tensors).rows() == [
        (0, 0, 3, "m0", "s0", [tensor("input.0", "input")]),
        (0, 0, 5, "m1", "s1", [tensor("input.1", "input")]),
        (0, 1, 3, "m2", "s2", [tensor("input.2", "input")]),
        (1, 0, 3, "m3", "s3", [tensor("input.3", "input")]),
    ]


def test_a_backward_call_has_the_stack_of_its_forward_and_what_that_read(ask) -> None:
    db = evidence(ask, FORWARD, BACKWARD, wanted=("0 0 9",)).table(
        "tensors",
        TENSORS,
        "0 0 3 input.0 input value float32 [2] 1 -1 - - -",
        "0 0 3 output.0 output value float32 [2] 1 -1 - - -",
        "0 0 9 input.0 input value float32 [2] 1 -1 - - -",
        "0 0 9 output.0 output value float32 [2] 1 -1 true - -",
    )
    tensors = [
        tensor("input.0", "forward input"),
        tensor("input.0", "input"),
        tensor("output.0", "output", found=["nan"]),
    ]
    assert db.rows() == [(0, 0, 9, "mlp", "a.py:7", tensors)]


@pytest.mark.parametrize(
    "other",
    ["0 0 3 Torch.log.1.forward", "0 1 3 Torch.log.0.forward", "1 0 3 Torch.log.0.forward"],
    ids=["another call", "another rank", "another step"],
)
def test_not_the_stack_of_another_call_nor_what_it_read(ask, other: str) -> None:
    db = evidence(ask, f"{other} mlp a.py:7", BACKWARD, wanted=("0 0 9",))
    db.table("tensors", TENSORS, f"{other[:5]} input.0 input value float32 [2] 1 -1 - - -")
    assert db.rows() == [(0, 0, 9, None, None, None)]


def test_a_stack_of_its_own_comes_first(ask) -> None:
    own = "0 0 9 Torch.log.0.backward attention b.py:9"
    db = evidence(ask, FORWARD, own, wanted=("0 0 9",))
    assert db.rows("module stack") == [("attention", "b.py:9")]


def test_a_backward_module_has_the_stack_of_its_forward(ask) -> None:
    calls = (
        "0 0 3 Module.mlp.Mlp.forward.0 mlp a.py:7",
        "0 0 4 Module.mlp.Mlp.forward.1 mlp a.py:8",
        "0 0 9 Module.mlp.Mlp.backward.0 mlp -",
    )
    assert evidence(ask, *calls, wanted=("0 0 9",)).rows("stack") == [("a.py:7",)]


def test_no_call_is_its_own_forward(ask) -> None:
    db = evidence(ask, FORWARD)
    db.table("tensors", TENSORS, "0 0 3 input.0 input value float32 [2] 1 -1 - - -")
    assert db.rows("tensors") == [([tensor("input.0", "input")],)]


def test_a_call_that_is_not_on_record_gives_nothing(ask) -> None:
    assert evidence(ask, FORWARD, wanted=("0 0 4", "0 1 3", "1 0 3")).rows() == []


def test_nothing_asked_gives_nothing(ask) -> None:
    assert evidence(ask, FORWARD, wanted=()).rows() == []
    assert ask("nan/evidence").rows() == []
