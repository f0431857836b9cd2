"""Shards of a whole."""

from __future__ import annotations

COLUMNS = "step seq slot key direction dtype shape numel max min mean norm"


def test_only_between_dumps_of_different_numbers_of_ranks(ask) -> None:
    for split in (True, False):
        db = ask("diff/parts", split=split)
        db.table("call_pairs", "step rank bench_rank bench_seq target_seq name", "0 1 0 3 4 mul")
        row = "input.0 input.0 input float32"
        db.table(
            "bench_tensors",
            COLUMNS,
            f"0 3 {row} [2,8] 16 8 1 4.5 20",
            f"0 3 {row.replace('0', '1')} [8] 8 1 1 1 1",
        )
        db.table(
            "target_tensors",
            COLUMNS,
            f"0 4 {row} [2,4] 8 4 1 2.5 9",
            f"0 4 {row.replace('0', '1')} [8] 8 1 1 1 1",
        )
        found = db.rows("rank slot numel bench_numel")
        assert found == ([(1, "input.0", 8, 16)] if split else [])
