"""Tensors whose elements are on record on both sides."""

from __future__ import annotations


def test_both_sides_and_one_shape(ask) -> None:
    db = ask("diff/value_pairs")
    db.table("call_pairs", "step bench_seq target_seq", "0 1 2")
    columns = "step seq slot key shape dtype value_path"
    rows = ["{} input.0 input.0 [4] float32 {}", "{} input.1 input.1 [{}] float32 x.npy"]
    db.table(
        "bench_tensors", columns, "0 " + rows[0].format(1, "a.npy"), "0 " + rows[1].format(1, 4)
    )
    db.table(
        "target_tensors",
        columns,
        "0 " + rows[0].format(2, "b.npy"),
        "0 " + rows[1].format(2, "5,5"),
    )
    assert db.rows() == [(0, 1, 2, "input.0", "float32", "a.npy", "b.npy")]


def test_one_may_be_longer_and_parts_of_two_layouts_do_not_count(ask) -> None:
    columns = "step seq slot key shape sharding value_path"
    for sharding, found in (("-", 1), ("S0/2", 0)):
        db = ask("diff/value_pairs")
        db.table("call_pairs", "step bench_seq target_seq", "0 1 2")
        db.table("bench_tensors", columns, "0 1 input.0 input.0 [4] - a.npy")
        db.table("target_tensors", columns, f"0 2 input.0 input.0 [6] {sharding} b.npy")
        assert len(db.rows()) == found


def test_nothing_on_one_side(ask) -> None:
    db = ask("diff/value_pairs")
    db.table("call_pairs", "step bench_seq target_seq", "0 1 2")
    columns = "step seq slot key shape dtype value_path"
    db.table("bench_tensors", columns, "0 1 input.0 input.0 [4] float32 -")
    db.table("target_tensors", columns, "0 2 input.0 input.0 [4] float32 b.npy")
    assert db.rows() == []
