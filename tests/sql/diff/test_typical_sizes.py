"""How large numbers are, by phase."""

from __future__ import annotations


def test_median_of_root_mean_squares(ask) -> None:
    db = ask("diff/typical_sizes")
    db.table(
        "bench_calls", "step seq phase", "0 0 forward", "0 1 forward", "0 2 forward", "0 3 backward"
    )
    db.table(
        "bench_tensors", "step seq norm numel dtype",
        "0 0 2 4 float32", "0 1 6 4 float32", "0 2 20 4 float32", "0 3 0 4 float32",
        "0 0 99 4 int64",
    )  # fmt: skip
    assert db.rows() == [(0, "forward", 3.0)]
