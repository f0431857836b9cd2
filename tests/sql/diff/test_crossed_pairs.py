"""Calls that ran in another order."""

from __future__ import annotations

COLUMNS = "step side seq operation site shapes size peak late"


def test_two_calls_whose_inputs_agree_crosswise(ask) -> None:
    db = ask("diff/crossed_pairs")
    db.table(
        "sequences", COLUMNS,
        "0 bench 0 1 0 7 3.0 1.0 false", "0 bench 1 1 0 7 5.0 2.0 false",
        "0 target 0 1 0 7 5.0 2.0 false", "0 target 1 1 0 7 3.0 1.0 false",
    )  # fmt: skip
    db.table("placed_pairs", "step bench_seq target_seq", "0 0 0", "0 1 1")
    assert db.rows() == [(0, 0, 1), (0, 1, 0)]


def test_not_from_other_places_in_the_source(ask) -> None:
    db = ask("diff/crossed_pairs")
    db.table(
        "sequences", COLUMNS,
        "0 bench 0 1 11 7 3.0 1.0 false",
        "0 target 0 1 12 7 3.0 1.0 false", "0 target 1 1 11 7 9.0 4.0 false",
    )  # fmt: skip
    db.table("placed_pairs", "step bench_seq target_seq", "0 0 1")
    assert db.rows() == []


def test_what_is_only_similar_stays_where_it_is(ask) -> None:
    """Weights of one shape have much the same norm."""
    db = ask("diff/crossed_pairs")
    db.table(
        "sequences", COLUMNS,
        "0 bench 0 1 0 7 3.0 1.0 false", "0 bench 1 1 0 7 3.001 1.0 false",
        "0 target 0 1 0 7 3.001 1.0 false", "0 target 1 1 0 7 3.0 1.0 false",
    )  # fmt: skip
    db.table("placed_pairs", "step bench_seq target_seq", "0 0 0", "0 1 1")
    assert db.rows() == []
