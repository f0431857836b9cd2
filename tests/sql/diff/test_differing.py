"""What an earlier difference explains."""

from __future__ import annotations

STATES = "step bench_seq target_seq in_kind in_slot out_kind out_slot in_ratio out_ratio"
TENSORS = "step bench_seq target_seq slot is_input weight judged kind ratio"
MADE = "step seq slot producer_seq producer_slot value_id"


def explained(ask, states: list[str], tensors: list[str], lineage: list[str]) -> dict[int, tuple]:
    db = ask("diff/differing")
    db.table("call_states", STATES, *states)
    db.table("tensor_pairs", TENSORS, *tensors)
    db.table("target_tensors", MADE, *lineage)
    return {row[0]: row[1:] for row in db.rows("target_seq drift explained off")}


def test_by_order_where_lineage_is_not_on_record(ask) -> None:
    found = explained(
        ask,
        ["0 1 1 - - value output.0 0 9", "0 2 2 value input.0 - - 9 0"],
        ["0 1 1 output.0 false false true value 9", "0 2 2 input.0 true false true value 9"],
        ["0 1 output.0 - - -", "0 2 input.0 - - -"],
    )
    assert found == {1: (False, False, False), 2: (False, True, False)}


def test_by_lineage(ask) -> None:
    """Call 3 reads what call 1 made, which agrees: nothing explains what it reads."""
    found = explained(
        ask,
        ["0 2 2 - - value output.0 0 9", *(f"0 {n} {n} value input.0 - - 9 0" for n in (3, 4))],
        [
            "0 1 1 output.0 false false true - 0", "0 2 2 output.0 false false true value 9",
            "0 3 3 input.0 true false true value 9", "0 4 4 input.0 true false true value 9",
        ],
        ["0 3 input.0 1 output.0 5", "0 4 input.0 2 output.0 6"],
    )  # fmt: skip
    assert found[3][1] is False
    assert found[4][1] is True


def test_a_weight_comes_from_outside_of_the_step(ask) -> None:
    found = explained(
        ask,
        [
            "0 1 1 - - value output.0 0 9",
            "0 2 2 value input.1 - - 9 0",
            "0 3 3 value input.1 - - 9 0",
        ],
        ["0 2 2 input.1 true true true value 9", "0 3 3 input.1 true true true value 9"],
        ["0 2 input.1 - - 7", "0 3 input.1 - - 7"],
    )
    assert [found[seq][1] for seq in (2, 3)] == [False, True]


def test_another_dtype_explains_no_value(ask) -> None:
    states = ["0 1 1 dtype input.0 dtype output.0 0.1 0.2", "0 2 2 dtype input.0 - - 3 0"]
    found = explained(
        ask,
        states,
        ["0 1 1 input.0 true false true dtype 0.1", "0 2 2 input.0 true false true dtype 3"],
        ["0 1 input.0 - - -", "0 2 input.0 - - -"],
    )
    assert found == {1: (False, False, False), 2: (False, False, True)}


def test_a_little_over_the_tolerance_from_inputs_that_used_much_of_it_is_drift(ask) -> None:
    found = explained(
        ask,
        ["0 1 1 - - value output.0 0.6 1.5", "0 2 2 value input.0 - - 1.5 0"],
        ["0 1 1 output.0 false false true value 1.5", "0 2 2 input.0 true false true value 1.5"],
        ["0 2 input.0 - - -"],
    )
    assert [found[seq][0] for seq in (1, 2)] == [True, True]


def test_nothing(ask) -> None:
    assert ask("diff/differing").rows() == []
