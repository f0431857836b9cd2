from __future__ import annotations

import pytest

CALLS = "step rank seq name api phase module"
TENSORS = "step rank seq entry slot nan posinf neginf numel dtype weight"
BIRTH = "0 0 3 birth output.0 true false false 4 float32 false"


def test_every_column_of_an_entry(ask) -> None:
    db = ask("nan/entries").table("calls", CALLS, "2 1 3 Torch.log.0.forward log forward decoder.0")
    db.table("entry_tensors", TENSORS, "2 1 3 birth output.0 false true true 4 float32 false")
    assert db.rows() == [
        (
            *(2, 1, 3, "birth", ["output.0"], ["inf", "-inf"], 4, "float32"),
            *(False, False, False, None, "Torch.log.0.forward", "log", "forward", "decoder.0"),
        )
    ]


def test_the_tensors_of_one_call_and_entry_are_one(ask) -> None:
    db = ask("nan/entries").table("calls", CALLS, "0 0 3 a x forward -")
    db.table(
        "entry_tensors",
        TENSORS,
        "0 0 3 import input.2 false false true 9 float16 false",
        "0 0 3 import input.1 true false false 4 float32 true",
        "0 0 3 received output.0 false true false 6 bfloat16 false",
    )
    assert db.rows("entry slots found numel dtype weight") == [
        ("import", ["input.1", "input.2"], ["nan", "-inf"], 9, "float32", True),
        ("received", ["output.0"], ["inf"], 6, "bfloat16", False),
    ]


@pytest.mark.parametrize(
    ("alive", "expected"),
    [
        ([], False),
        (["0 0 3"], True),
        (["0 0 4", "0 1 3", "1 0 3"], False),
    ],
)
def test_alive_when_it_goes_on_to_a_loose_end(ask, alive: list[str], expected: bool) -> None:
    db = ask("nan/entries").table("calls", CALLS, "0 0 3 a x forward -")
    db.table("entry_tensors", TENSORS, BIRTH).table("alive", "step rank seq", *alive)
    assert db.rows("alive") == [(expected,)]


@pytest.mark.parametrize(
    ("manner", "expected"), [("given", True), ("kept", False), ("turned", False)]
)
def test_given_when_an_argument_asked_for_it(ask, manner: str, expected: bool) -> None:
    db = ask("nan/entries").table("calls", CALLS, "0 0 3 a x forward -")
    db.table("entry_tensors", TENSORS, BIRTH)
    db.table("on_purpose", "step rank seq manner", f"0 0 3 {manner}")
    assert db.rows("given") == [(expected,)]


class TestImports:
    """Reads of one size, mostly, that no call made."""

    def imports(self, ask, *tensors: str, alive: tuple[str, ...] = ()):
        db = ask("nan/entries")
        db.table(
            "calls",
            CALLS,
            *(f"{s} {r} {q} a x forward -" for s in "01" for r in "01" for q in "3456"),
        )
        db.table("entry_tensors", TENSORS, *tensors)
        return db.table("alive", "step rank seq", *alive)

    def test_the_first_that_lives_and_the_first_that_dies_stand_for_all(self, ask) -> None:
        rows = (f"0 0 {seq} import input.0 true false false 4 float32 false" for seq in "3456")
        db = self.imports(ask, *rows, alive=("0 0 4", "0 0 6"))
        assert db.rows("seq alive") == [(3, False), (4, True)]

    @pytest.mark.parametrize(
        "other",
        [
            "0 0 4 import input.0 true false false 5 float32 false",
            "0 0 4 import input.0 true false false 4 float32 true",
            "0 1 4 import input.0 true false false 4 float32 false",
            "1 0 4 import input.0 true false false 4 float32 false",
            "0 0 4 lost input.0 true false false 4 float32 false",
        ],
        ids=["size", "weight", "rank", "step", "entry"],
    )
    def test_imports_that_differ_do_not_stand_for_one_another(self, ask, other: str) -> None:
        db = self.imports(ask, "0 0 3 import input.0 true false false 4 float32 false", other)
        assert sorted(seq for (seq,) in db.rows("seq")) == [3, 4]

    @pytest.mark.parametrize(
        "entry", "birth turned saved received lost uninitialized carried".split()
    )
    def test_no_other_entry_stands_for_a_later_one(self, ask, entry: str) -> None:
        rows = (f"0 0 {seq} {entry} output.0 true false false 4 float32 false" for seq in "34")
        assert self.imports(ask, *rows).rows("seq") == [(3,), (4,)]


def backward(
    ask,
    *,
    forward: str,
    name: str,
    bad: str = "0 0 3",
    alive: str = "0 0 3",
    entry: str = "birth",
):
    """Return the question for call 5, an entry, where call 3 of forward may hold a bad value."""
    db = ask("nan/entries").table("calls", CALLS, f"0 0 3 {forward} x forward -", f"0 0 5 {name}")
    db.table("bad_calls", "step rank seq", *([bad] if bad else []))
    db.table("alive", "step rank seq", *([alive] if alive else []))
    return db.table("entry_tensors", TENSORS, BIRTH.replace("0 0 3 birth", f"0 0 5 {entry}"))


@pytest.mark.parametrize("entry", ["birth", "turned", "import", "lost"])
def test_after_a_forward_that_held_a_living_bad_value(ask, entry: str) -> None:
    name = "Torch.log.0.backward log backward -"
    db = backward(ask, forward="Torch.log.0.forward", name=name, entry=entry)
    assert db.rows("forward_seq") == [(3,)]


@pytest.mark.parametrize(
    ("forward", "bad", "alive"),
    [
        pytest.param("Torch.log.1.forward", "0 0 3", "0 0 3", id="another call"),
        pytest.param("Torch.log.0.forward", "", "", id="finite"),
        pytest.param("Torch.log.0.forward", "0 0 3", "", id="it died out"),
        pytest.param("Torch.log.0.forward", "0 1 3", "0 1 3", id="another rank"),
        pytest.param("Torch.log.0.forward", "1 0 3", "1 0 3", id="another step"),
    ],
)
def test_not_after_another_or_a_finite_forward(ask, forward: str, bad: str, alive: str) -> None:
    name = "Torch.log.0.backward log backward -"
    db = backward(ask, forward=forward, name=name, bad=bad, alive=alive)
    assert db.rows("forward_seq") == [(None,)]


def test_after_a_forward_whose_bad_value_left_the_rank(ask) -> None:
    name = "Torch.log.0.backward log backward -"
    db = backward(ask, forward="Torch.log.0.forward", name=name, alive="")
    assert db.table("leaving", "step rank seq", "0 0 3").rows("forward_seq") == [(3,)]


def test_after_the_forward_of_a_module(ask) -> None:
    name = "Module.mlp.Mlp.backward.0 Mlp backward mlp"
    db = backward(ask, forward="Module.mlp.Mlp.forward.0", name=name)
    assert db.rows("forward_seq") == [(3,)]


def test_a_forward_module_is_not_after_itself(ask) -> None:
    db = ask("nan/entries").table("calls", CALLS, "0 0 3 Module.mlp.Mlp.forward.0 Mlp forward mlp")
    db.table("bad_calls", "step rank seq", "0 0 3").table("alive", "step rank seq", "0 0 3")
    assert db.table("entry_tensors", TENSORS, BIRTH).rows("forward_seq") == [(None,)]


@pytest.mark.parametrize("name", ["Torch.mul.0.forward mul", "Module.mlp.Mlp.parameters_grad Mlp"])
def test_a_call_of_backward_that_has_no_forward_is_not_after_itself(ask, name: str) -> None:
    db = ask("nan/entries").table("calls", CALLS, f"0 0 3 {name} backward -")
    db.table("bad_calls", "step rank seq", "0 0 3").table("alive", "step rank seq", "0 0 3")
    assert db.table("entry_tensors", TENSORS, BIRTH).rows("forward_seq") == [(None,)]


def test_what_is_not_recorded_of_the_call_stays_unknown(ask) -> None:
    db = ask("nan/entries").table("calls", CALLS, "0 0 3 x.0.debug x - -")
    db.table("entry_tensors", TENSORS, "0 0 3 saved output true false false - - false")
    assert db.rows("numel dtype phase module") == [(None, None, None, None)]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/entries").rows() == []
