"""How far a further run is from the benchmark."""

from __future__ import annotations

COLUMNS = "step seq slot key shape max min mean norm"


def test_differences(ask) -> None:
    db = ask("diff/noise_errors")
    db.table("call_pairs", "step bench_seq target_seq", "0 1 2")
    db.table(
        "bench_tensors",
        COLUMNS,
        "0 1 input.0 input.0 [4] 2 -1 0 3",
        "0 1 input.1 input.1 [4] 2 0 0 3",
    )
    db.table(
        "target_tensors",
        COLUMNS,
        "0 2 input.0 input.0 [4] 2.5 -1 1 3",
        "0 2 input.1 input.1 [5] 9 0 0 3",
    )
    assert db.rows() == [(0, 1, "input.0", 0.5, 1.0, 0.0)]
