"""Parts of a whole."""

from __future__ import annotations

COLUMNS = "step seq slot shape numel sharding shards max"


def parts(ask, bench: str, target: str, part: str = "true") -> list:
    db = ask("diff/parts")
    db.table("call_pairs", "step rank bench_rank bench_seq target_seq name", "0 1 0 3 4 mul")
    db.table(
        "tensor_pairs", "step bench_seq target_seq slot bench_slot part",
        f"0 3 4 input.0 input.0 {part}", "0 3 4 input.1 input.1 false",
    )  # fmt: skip
    db.table("bench_tensors", COLUMNS, f"0 3 input.0 {bench}", "0 3 input.1 [8] 8 - - 1")
    db.table("target_tensors", COLUMNS, f"0 4 input.0 {target}", "0 4 input.1 [8] 8 - - 1")
    return db.rows("rank slot numel shards bench_numel bench_shards size")


def test_by_shape(ask) -> None:
    found = parts(ask, "[2,8] 16 - - 8", "[2,4] 8 - - 4")
    assert found == [(1, "input.0", 8, 2, 16, 1, 16)]


def test_by_placements(ask) -> None:
    """The shape of a DTensor is that of the whole."""
    found = parts(ask, "[2,8] 16 - - 8", "[2,8] 4 S1/4 4 4")
    assert found == [(1, "input.0", 4, 4, 16, 1, 16)]


def test_nothing_where_both_sides_hold_the_same(ask) -> None:
    assert parts(ask, "[8] 8 - - 1", "[8] 8 - - 1", part="false") == []
