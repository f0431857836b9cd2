"""The error along the run."""

from __future__ import annotations


def test_stretches(ask) -> None:
    db = ask("diff/error_profile")
    pairs = [f"0 0 {seq} {seq} call{seq}" for seq in range(400)]
    db.table("call_pairs", "step rank bench_seq target_seq name", *pairs)
    tensors = [f"0 {seq} {seq} false {seq % 2 + 1} 0.001 0.5" for seq in range(400)]
    tensors += ["0 3 3 true 9 0.001 0.5"]
    db.table("tensor_pairs", "step bench_seq target_seq is_input ratio tolerance max_rel", *tensors)
    rows = db.rows("seq max_rel name")
    assert len(rows) == 200
    assert rows[1] == (2, 0.002, "call3")
