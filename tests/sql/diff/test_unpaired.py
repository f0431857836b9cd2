"""Calls that only one dump has."""

from __future__ import annotations

CALLS = "step rank seq name"


def test_a_block_that_another_replaces(ask) -> None:
    db = ask("diff/unpaired")
    db.table("bench_calls", CALLS, "0 0 0 a", "0 0 1 matmul", "0 0 2 softmax", "0 0 3 b")
    db.table("target_calls", CALLS, "0 0 0 a", "0 0 1 sdpa", "0 0 2 b", "0 0 3 extra")
    db.table("call_pairs", "step rank bench_seq target_seq how", "0 0 0 0 place", "0 0 3 2 place")
    db.table("call_states", "step target_seq in_kind", "0 0 -", "0 2 -")
    assert db.rows("side name replaced") == [
        ("bench", "matmul", True), ("bench", "softmax", True),
        ("target", "sdpa", True), ("target", "extra", False),
    ]  # fmt: skip


def test_another_result_is_no_replacement(ask) -> None:
    db = ask("diff/unpaired")
    db.table("bench_calls", CALLS, "0 0 0 a", "0 0 1 gelu", "0 0 2 b")
    db.table("target_calls", CALLS, "0 0 0 a", "0 0 1 relu", "0 0 2 b")
    db.table("call_pairs", "step rank bench_seq target_seq how", "0 0 0 0 place", "0 0 2 2 place")
    db.table("call_states", "step target_seq in_kind", "0 0 -", "0 2 value")
    assert {row[0] for row in db.rows("replaced")} == {False}


def test_the_calls_of_a_sequence_that_agrees_with_a_single_call(ask) -> None:
    for kind, replaced in (("-", True), ("value", False)):
        db = ask("diff/unpaired")
        columns = f"{CALLS} forward_seq"
        db.table("bench_calls", columns, "0 0 0 linear -")
        db.table(
            "target_calls", columns,
            "0 0 0 matmul -", "0 0 1 biasadd -", "0 0 2 exp -", "0 0 3 matmul.back 0",
        )  # fmt: skip
        db.table("call_pairs", "step rank bench_seq target_seq how", "0 0 0 1 fused")
        db.table("fused_pairs", "step bench_seq target_seq side first_seq", "0 0 1 target 0")
        db.table("call_states", "step bench_seq target_seq out_kind", f"0 0 1 {kind}")
        assert db.rows("name replaced") == [
            ("matmul", replaced), ("exp", False), ("matmul.back", replaced),
        ]  # fmt: skip
