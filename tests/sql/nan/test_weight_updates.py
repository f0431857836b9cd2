from __future__ import annotations

import pytest

CALLS = "step rank seq name api"
TENSORS = "step rank seq slot direction requires_grad numel max min has_nan has_posinf has_neginf"
ENTRIES = "step rank seq entry slot weight"
FINITE = "4 2 -1 false false false"


class TestInPlace:
    def birth(self, ask, *tensors: str, api: str = "addcdiv_", entry: str = "birth"):
        db = ask("nan/weight_updates").table("calls", CALLS, f"0 0 7 Tensor.{api}.0.forward {api}")
        db.table("entry_tensors", ENTRIES, f"0 0 7 {entry} output.0 false")
        return db.table("tensors", TENSORS, *tensors)

    def test_a_birth_in_a_leaf_that_is_changed_in_place(self, ask) -> None:
        db = self.birth(ask, f"0 0 7 input.0 input true {FINITE}")
        assert db.rows() == [(0, 0, 7, "birth", "in_place")]

    @pytest.mark.parametrize(
        "tensor",
        [
            f"0 0 7 input.0 input false {FINITE}",
            f"0 0 7 input.0 input - {FINITE}",
            f"0 0 7 input.1 input true {FINITE}",
        ],
        ids=["no gradient", "not recorded", "not the tensor that is changed"],
    )
    def test_not_in_a_tensor_that_requires_no_gradient(self, ask, tensor: str) -> None:
        assert self.birth(ask, tensor).rows() == []

    @pytest.mark.parametrize("api", ["addcdiv", "__add__", "__mul__"])
    def test_not_in_a_call_that_makes_a_new_tensor(self, ask, api: str) -> None:
        assert self.birth(ask, f"0 0 7 input.0 input true {FINITE}", api=api).rows() == []

    @pytest.mark.parametrize("api", ["__iadd__", "__isub__", "__imul__", "__itruediv__"])
    def test_an_operator_that_changes_its_left_side(self, ask, api: str) -> None:
        db = self.birth(ask, f"0 0 7 input.0 input true {FINITE}", api=api)
        assert db.rows() == [(0, 0, 7, "birth", "in_place")]

    @pytest.mark.parametrize("entry", ["import", "turned", "lost"])
    def test_not_when_nothing_was_born(self, ask, entry: str) -> None:
        assert self.birth(ask, f"0 0 7 input.0 input true {FINITE}", entry=entry).rows() == []

    def test_not_in_a_tensor_that_a_call_of_the_step_made(self, ask) -> None:
        changed = f"0 0 7 input.0 input true {FINITE}"
        assert self.birth(ask, changed, f"0 0 6 output.0 output true {FINITE}").rows() == []

    @pytest.mark.parametrize(
        "other",
        [
            f"0 0 7 output.0 output true {FINITE}",
            f"0 1 6 output.0 output true {FINITE}",
            f"1 0 6 output.0 output true {FINITE}",
            f"0 0 6 input.0 input true {FINITE}",
            "0 0 6 output.0 output true 5 2 -1 false false false",
            "0 0 6 output.0 output true 4 3 -1 false false false",
            "0 0 6 output.0 output true 4 2 -3 false false false",
        ],
    )
    def test_a_tensor_that_another_result_only_resembles(self, ask, other: str) -> None:
        db = self.birth(ask, f"0 0 7 input.0 input true {FINITE}", other)
        assert db.rows("seq manner") == [(7, "in_place")]

    @pytest.mark.parametrize("grad", ["true", "false", "-"])
    def test_a_parameter_that_a_broadcast_wrote_before(self, ask, grad: str) -> None:
        changed = f"0 0 7 input.0 parameter {grad} {FINITE}"
        broadcast = f"0 0 6 output.0 output {grad} {FINITE}"
        db = self.birth(ask, changed, broadcast, api="sub_")
        assert db.rows() == [(0, 0, 7, "birth", "in_place")]

    def test_not_in_a_call_that_makes_something_new_of_a_parameter(self, ask) -> None:
        assert self.birth(ask, f"0 0 7 input.0 parameter true {FINITE}", api="sub").rows() == []

    def test_not_by_a_parameter_that_is_only_read(self, ask) -> None:
        tensors = f"0 0 7 input.0 input false {FINITE}", f"0 0 7 input.1 parameter true {FINITE}"
        assert self.birth(ask, *tensors, api="sub_").rows() == []


class TestBetween:
    """Call 3 of step 5 reads a bad weight; call 2 of an earlier step had the same name."""

    def weight(
        self,
        ask,
        before: str,
        *,
        steps: tuple[str, ...] = ("4", "5"),
        entry: str = "import input.1 true",
        call: str = "4 0 2 Functional.linear.0.forward linear",
    ):
        db = ask("nan/weight_updates")
        db.table("shard_files", "step rank", *(f"{step} 0" for step in steps))
        db.table("calls", CALLS, "5 0 3 Functional.linear.0.forward linear", call)
        db.table("entry_tensors", ENTRIES, f"5 0 3 {entry}")
        return db.table("tensors", TENSORS, before)

    @pytest.mark.parametrize("found", ["false false false", "false - -"])
    def test_a_weight_that_was_finite_a_step_earlier(self, ask, found: str) -> None:
        db = self.weight(ask, f"4 0 2 input.1 input true 4 2 -1 {found}")
        assert db.rows() == [(5, 0, 3, "import", "between")]

    @pytest.mark.parametrize(
        "found",
        ["true - -", "false true false", "false false true", "- - -"],
        ids=["NaN", "inf", "-inf", "not recorded"],
    )
    def test_not_when_it_was_bad_or_nobody_knows(self, ask, found: str) -> None:
        assert self.weight(ask, f"4 0 2 input.1 input true 4 2 -1 {found}").rows() == []

    @pytest.mark.parametrize("entry", ["import input.1 false", "carried input.1 true"])
    def test_not_when_no_bad_weight_came_in(self, ask, entry: str) -> None:
        db = self.weight(ask, f"4 0 2 input.1 input true {FINITE}", entry=entry)
        assert db.rows() == []

    @pytest.mark.parametrize(
        "call",
        [
            "4 0 2 Functional.linear.1.forward linear",
            "4 1 2 Functional.linear.0.forward linear",
            "5 0 2 Functional.linear.0.forward linear",
        ],
        ids=["another call", "another rank", "the same step"],
    )
    def test_not_when_another_call_read_it(self, ask, call: str) -> None:
        tensor = f"{call[:5]} input.1 input true {FINITE}"
        assert self.weight(ask, tensor, call=call).rows() == []

    def test_not_when_another_tensor_of_the_call_was_finite(self, ask) -> None:
        assert self.weight(ask, f"4 0 2 input.0 input true {FINITE}").rows() == []

    def test_a_step_earlier_is_the_last_one_on_record(self, ask) -> None:
        before = f"4 0 2 input.1 input true {FINITE}"
        call = "1 0 2 Functional.linear.0.forward linear"
        far = before.replace("4 0 2", "1 0 2")
        assert self.weight(ask, far, call=call, steps=("1", "5")).rows("manner") == [("between",)]
        assert self.weight(ask, far, call=call, steps=("1", "4", "5")).rows() == []


def test_nothing_came_in_gives_nothing(ask) -> None:
    assert ask("nan/weight_updates").rows() == []


class TestLost:
    """Call 3 of step 1 reads a bad weight that call 2 of an earlier step wrote, finite then."""

    def updates(self, ask, *, producer: str = "0 0 2", phase: str = "forward", entry: str = "lost"):
        db = ask("nan/weight_updates").table("calls", "step rank seq phase", f"{producer} {phase}")
        columns = "step rank seq entry slot weight"
        db.table("entry_tensors", columns, f"1 0 3 {entry} input.1 true")
        step, _, seq = producer.split()
        reads = "step rank seq slot source producer_step producer_seq"
        return db.table("bad_reads", reads, f"1 0 3 input.1 lost {step} {seq}")

    def test_between_the_steps(self, ask) -> None:
        assert self.updates(ask).rows() == [(1, 0, 3, "lost", "between")]

    def test_not_after_an_update_that_is_on_record(self, ask) -> None:
        assert self.updates(ask, phase="optimizer").rows() == []

    def test_not_within_a_step(self, ask) -> None:
        assert self.updates(ask, producer="1 0 2").rows() == []
