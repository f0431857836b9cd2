"""What is wrong with a pair of calls first."""

from __future__ import annotations

TENSORS = "step bench_seq target_seq slot is_input judged kind ratio norm_ratio"


def test_dtype_before_arguments_before_values(ask) -> None:
    db = ask("diff/call_states")
    db.table(
        "call_pairs",
        "step bench_seq target_seq phase",
        "0 1 1 forward",
        "0 2 2 forward",
        "0 3 3 forward",
    )
    db.table(
        "tensor_pairs", TENSORS,
        "0 1 1 input.0 true true value 9 9", "0 1 1 input.1 true true dtype 0 0",
        "0 2 2 input.0 true true value 9 9",
        "0 3 3 output.0 false true value 5 4",
    )  # fmt: skip
    db.table("argument_pairs", "step bench_seq target_seq slot", "0 1 1 input.p", "0 2 2 input.p")
    assert db.rows("target_seq in_kind in_slot out_kind out_slot") == [
        (1, "dtype", "input.1", None, None),
        (2, "argument", "input.p", None, None),
        (3, None, None, "value", "output.0"),
    ]


def test_a_backward_call_reads_what_its_forward_call_read(ask) -> None:
    db = ask("diff/call_states")
    db.table(
        "call_pairs", "step bench_seq target_seq phase forward_seq",
        "0 1 1 forward -", "0 2 2 backward 1",
    )  # fmt: skip
    db.table("tensor_pairs", TENSORS, "0 1 1 input.0 true true - 0.7 0.2")
    assert db.rows("target_seq in_ratio in_norm") == [(1, 0.7, 0.2), (2, 0.7, 0.2)]


def test_another_shape_that_changes_nothing_is_padding(ask) -> None:
    db = ask("diff/call_states")
    pairs = [f"0 {n} {n} forward" for n in range(1, 5)]
    db.table("call_pairs", "step bench_seq target_seq phase", *pairs)
    columns = "step bench_seq target_seq slot is_input judged kind agreement"
    db.table(
        "tensor_pairs", columns,
        "0 1 1 input.0 true true shape -", "0 1 1 output.0 false true - rounding",
        "0 2 2 input.0 true true shape -", "0 2 2 output.0 false true value -",
        "0 3 3 input.0 true true shape -", "0 3 3 output.0 false false - -",
        "0 4 4 input.0 true true - padding", "0 4 4 output.0 false true - bits",
    )  # fmt: skip
    assert db.rows("target_seq in_kind padding") == [
        (1, None, "input.0"), (2, "shape", None), (3, "shape", None), (4, None, "input.0"),
    ]  # fmt: skip
