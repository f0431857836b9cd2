"""Which unpaired call a difference comes from."""

from __future__ import annotations

NUMBERS = "step seq slot key direction dtype numel max min mean norm"


def test_the_latest_unpaired_call_that_made_these_numbers(ask) -> None:
    db = ask("diff/sources")
    db.table(
        "differing", "step bench_seq target_seq drift explained slot", "0 5 9 false false input.0"
    )
    db.table(
        "unpaired",
        "step side seq name",
        "0 target 7 relu.0",
        "0 target 8 relu.1",
        "0 bench 4 gelu.0",
    )
    made = "output.0 output.0 output float32 4"
    db.table(
        "target_tensors", NUMBERS,
        "0 9 input.0 input.0 input float32 4 1 0 0.5 2",
        f"0 7 {made} 1 0 0.5 2", f"0 8 {made} 1 0 0.5 2",
    )  # fmt: skip
    db.table(
        "bench_tensors",
        NUMBERS,
        "0 5 input.0 input.0 input float32 4 3 0 0.5 2",
        f"0 4 {made} 3 0 0.5 2",
    )
    assert db.rows() == [(0, 5, 9, "relu.1", "gelu.0")]


def test_other_numbers_are_another_source(ask) -> None:
    db = ask("diff/sources")
    db.table(
        "differing", "step bench_seq target_seq drift explained slot", "0 5 9 false false input.0"
    )
    db.table("unpaired", "step side seq name", "0 target 7 relu.0")
    db.table(
        "target_tensors", NUMBERS,
        "0 9 input.0 input.0 input float32 4 1 0 0.5 2",
        "0 7 output.0 output.0 output float32 4 1 0 0.5 3",
    )  # fmt: skip
    assert db.rows() == []
