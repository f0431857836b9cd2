"""What all shards are together."""

from __future__ import annotations

COLUMNS = (
    "step rank bench_rank seq bench_seq name slot bench_slot is_input dtype bench_dtype numel max "
    "min mean norm bench_numel bench_max bench_min bench_mean bench_norm"
)
WHOLE = "8 8 1 4.5 14.282856857085701"
"""Of the numbers 1 to 8."""


def merged(ask, *rows: str) -> list:
    db = ask("diff/merged_parts").table("parts", COLUMNS, *rows)
    return db.rows("shards comparable max min mean norm ratio")


def test_the_algebra_of_shards(ask) -> None:
    """Not the sum of the norms, which would be 18.668."""
    found = merged(
        ask,
        f"0 0 0 4 3 mul input.0 input.0 true float32 float32 4 4 1 2.5 5.477225575051661 {WHOLE}",
        f"0 1 0 4 3 mul input.0 input.0 true float32 float32 4 8 5 6.5 13.19090595827292 {WHOLE}",
    )
    ((shards, comparable, high, low, mean, norm, ratio),) = found
    assert (shards, comparable, high, low, mean) == (2, True, 8.0, 1.0, 4.5)
    assert abs(norm - 14.282856857085701) < 1e-9
    assert ratio < 1e-3


def test_a_shard_that_differs(ask) -> None:
    found = merged(
        ask,
        f"0 0 0 4 3 mul input.0 input.0 true float32 float32 4 4 1 2.5 5.477225575051661 {WHOLE}",
        f"0 1 0 4 3 mul input.0 input.0 true float32 float32 4 8.08 5 6.5 13.3 {WHOLE}",
    )
    assert found[0][-1] > 100


def test_a_missing_shard_is_not_comparable(ask) -> None:
    row = "0 0 0 4 3 mul input.0 input.0 true float32 float32 4 4 1 2.5 5.477225575051661"
    assert merged(ask, f"{row} {WHOLE}")[0][:2] == (1, False)
