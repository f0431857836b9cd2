"""All pairs but those of backward calls."""

from __future__ import annotations

COLUMNS = "step side seq operation site module shapes size peak late"


def test_a_late_call_that_reads_the_same_again_is_a_recomputation(ask) -> None:
    db = ask("diff/forward_pairs")
    db.table(
        "sequences", COLUMNS,
        "0 bench 0 1 0 0 7 3.0 1.0 false",
        "0 target 0 1 0 0 7 3.0 1.0 false",
        "0 target 9 1 0 0 7 3.0 1.0 true",
        "0 target 10 1 0 0 7 4.0 1.0 true",
    )  # fmt: skip
    db.table("placed_pairs", "step bench_seq target_seq", "0 0 0")
    assert db.rows() == [(0, 0, 0, "place"), (0, 0, 9, "recompute")]


def test_the_other_way_round(ask) -> None:
    db = ask("diff/forward_pairs")
    db.table(
        "sequences", COLUMNS,
        "0 bench 0 1 0 0 7 3.0 1.0 false",
        "0 bench 9 1 0 0 7 3.0 1.0 true",
        "0 target 0 1 0 0 7 3.0 1.0 false",
    )  # fmt: skip
    db.table("placed_pairs", "step bench_seq target_seq", "0 0 0")
    assert db.rows() == [(0, 0, 0, "place"), (0, 9, 0, "recompute")]


def test_crossed_pairs_replace_those_of_their_calls(ask) -> None:
    db = ask("diff/forward_pairs")
    db.table("placed_pairs", "step bench_seq target_seq", "0 0 0", "0 1 1", "0 2 2")
    db.table("crossed_pairs", "step bench_seq target_seq", "0 0 1", "0 1 0")
    assert db.rows() == [(0, 0, 1, "crossed"), (0, 1, 0, "crossed"), (0, 2, 2, "place")]


def test_a_fused_pair_comes_before_what_places_give(ask) -> None:
    db = ask("diff/forward_pairs")
    db.table("placed_pairs", "step bench_seq target_seq", "0 0 0", "0 1 2")
    db.table("fused_pairs", "step bench_seq target_seq side first_seq", "0 0 1 target 0")
    assert db.rows() == [(0, 0, 1, "fused"), (0, 1, 2, "place")]
