"""The numbers of the first calls that differ."""

from __future__ import annotations


def test_both_sides(ask) -> None:
    db = ask("diff/divergence_tensors")
    db.table("findings", "step rank seq bench_seq status", "0 0 4 3 suspect", "0 0 1 1 drift")
    db.table(
        "tensor_pairs", "step target_seq bench_seq slot bench_slot is_input kind",
        "0 4 3 output.0 output.0 false value", "0 4 3 input.0 input.0 true -",
        "0 1 1 input.0 input.0 true value",
    )  # fmt: skip
    for side, seq, value in (("target", 4, 2), ("bench", 3, 1)):
        columns = "step seq slot max"
        db.table(f"{side}_tensors", columns, f"0 {seq} input.0 7", f"0 {seq} output.0 {value}")
    assert db.rows("seq slot kind bench_max max") == [
        (4, "input.0", None, 7.0, 7.0),
        (4, "output.0", "value", 1.0, 2.0),
    ]
