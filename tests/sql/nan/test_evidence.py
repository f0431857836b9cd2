from __future__ import annotations

import pytest

CALLS = "step rank seq name module stack"
TENSORS = "step rank seq slot direction role dtype shape max min has_nan has_posinf has_neginf"
ENTRIES = "step rank seq entry name alive"
SATURATIONS = "step rank seq name"
FORWARD = "0 0 3 Torch.log.0.forward mlp a.py:7"
BACKWARD = "0 0 9 Torch.log.0.backward - -"
LOG = "0 0 3 birth Torch.log.0.forward true"
BACKWARD_LOG = "0 0 9 birth Torch.log.0.backward true"


def evidence(ask, *calls: str, entries: tuple[str, ...] = ()):
    """Return the question for these calls and what came in by them."""
    db = ask("nan/evidence").table("calls", CALLS, *calls)
    db.table("call_facts", "step rank seq name", *(" ".join(c.split()[:4]) for c in calls))
    return db.table("entries", ENTRIES, *entries)


def tensor(slot: str, direction: str, **values) -> dict:
    """Return one tensor as a reader sees it: float32[2], finite, from -1 to 1, unless given."""
    shown = {"dtype": "float32", "shape": [2], "max": 1.0, "min": -1.0, "found": []}
    return {"slot": slot, "direction": direction, **shown, **values}


def test_call_and_tensors_of_an_entry(ask) -> None:
    db = evidence(ask, FORWARD, entries=(LOG,)).table(
        "tensor_facts",
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
    db = evidence(ask, FORWARD, entries=(LOG,)).table(
        "tensor_facts",
        TENSORS,
        "0 0 3 input.0 input buffer float32 [2] 1 -1 - - -",
        "0 0 3 output.0 output echo float32 [2] 1 -1 - - -",
        "0 0 4 output.0 output value float32 [2] 1 -1 - - -",
        "0 1 3 output.0 output value float32 [2] 1 -1 - - -",
        "1 0 3 output.0 output value float32 [2] 1 -1 - - -",
    )
    assert db.rows("seq tensors") == [(3, None)]


def test_what_is_not_recorded_stays_unknown(ask) -> None:
    db = evidence(ask, "0 0 3 a - -", entries=("0 0 3 birth a true",))
    assert db.rows() == [(0, 0, 3, None, None, None)]


def test_saturations_may_be_origins_too(ask) -> None:
    db = evidence(ask, FORWARD, BACKWARD, entries=(LOG,))
    db.table("saturations", SATURATIONS, "0 0 3 Torch.log.0.forward", "0 0 9 Torch.log.0.backward")
    assert db.rows("seq") == [(3,), (9,)]


class TestEight:
    """Calls of rank 0 in step 0, one after the other."""

    def calls(self, ask, *entries: str, places: tuple[str, ...] = ()):
        calls = [f"0 0 {seq} a.{seq} - -" for seq in range(15)]
        calls += [f"{place} a.0 - -" for place in places]
        return evidence(ask, *calls, entries=entries)

    def test_the_first_of_a_step_and_rank_that_live(self, ask) -> None:
        entries = [f"0 0 {seq} birth a.{seq} true" for seq in range(10)]
        others = ("0 1 30", "1 0 31")
        entries += [f"{place} birth a.0 true" for place in others]
        db = self.calls(ask, *entries, places=others)
        first = [(0, 0, seq) for seq in range(8)]
        assert db.rows("step rank seq") == [*first, (0, 1, 30), (1, 0, 31)]

    def test_what_lives_comes_before_what_died_out(self, ask) -> None:
        alive = {2, 9, 12}
        entries = (f"0 0 {seq} birth a.{seq} {str(seq in alive).lower()}" for seq in range(15))
        db = self.calls(ask, *entries)
        assert db.rows("seq") == [(seq,) for seq in (0, 1, 2, 3, 4, 5, 9, 12)]

    def test_what_was_received_takes_no_place_of_the_others(self, ask) -> None:
        entries = [f"0 0 {seq} received a.{seq} true" for seq in range(9)]
        db = self.calls(ask, *entries, "0 0 12 birth a.12 false", "0 0 3 birth a.3 true")
        assert db.rows("seq") == [(seq,) for seq in (0, 1, 2, 3, 4, 5, 6, 7, 8, 12)]

    def test_a_saturation_counts_as_what_lives(self, ask) -> None:
        entries = (f"0 0 {seq} birth a.{seq} false" for seq in range(10))
        db = self.calls(ask, *entries).table("saturations", SATURATIONS, "0 0 14 a.14")
        assert db.rows("seq") == [*((seq,) for seq in range(7)), (14,)]

    def test_two_entries_of_one_call_count_once(self, ask) -> None:
        words = (("import", "false"), ("received", "true"))
        entries = [
            f"0 0 {seq} {entry} a.{seq} {alive}" for seq in range(9) for entry, alive in words
        ]
        db = self.calls(ask, *entries).table("saturations", SATURATIONS, "0 0 0 a.0")
        assert db.rows("seq") == [(seq,) for seq in range(8)]


def test_a_backward_call_has_the_stack_of_its_forward_and_what_that_read(ask) -> None:
    db = evidence(ask, FORWARD, BACKWARD, entries=(BACKWARD_LOG,)).table(
        "tensor_facts",
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
    [
        "0 0 3 Torch.log.1.forward mlp a.py:7",
        "0 1 3 Torch.log.0.forward mlp a.py:7",
        "1 0 3 Torch.log.0.forward mlp a.py:7",
    ],
    ids=["another call", "another rank", "another step"],
)
def test_not_the_stack_of_another_call(ask, other: str) -> None:
    db = evidence(ask, other, BACKWARD, entries=(BACKWARD_LOG,))
    assert db.rows("seq module stack") == [(9, None, None)]


def test_a_stack_of_its_own_comes_first(ask) -> None:
    own = "0 0 9 Torch.log.0.backward attention b.py:9"
    db = evidence(ask, FORWARD, own, entries=(BACKWARD_LOG,))
    assert db.rows("module stack") == [("attention", "b.py:9")]


def test_a_backward_module_has_the_stack_of_its_forward(ask) -> None:
    db = evidence(
        ask,
        "0 0 3 Module.mlp.Mlp.forward.0 mlp a.py:7",
        "0 0 9 Module.mlp.Mlp.backward.0 mlp -",
        entries=("0 0 9 birth Module.mlp.Mlp.backward.0 true",),
    )
    assert db.rows("stack") == [("a.py:7",)]


def test_no_entry_gives_nothing(ask) -> None:
    assert evidence(ask, FORWARD).rows() == []
    assert ask("nan/evidence").rows() == []
