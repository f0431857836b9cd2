"""Pairs by place."""

from __future__ import annotations


def test_positions_of_even_parts_and_what_was_aligned(ask) -> None:
    db = ask("diff/placed_pairs")
    db.table(
        "sequences",
        "step part even side position seq",
        "0 a true bench 0 5",
        "0 a true target 0 7",
        "0 b false bench 0 8",
        "0 b false target 0 9",
        "1 a true bench 0 5",
    )
    db.table("aligned", "step bench_seq target_seq", "0 8 10")
    assert db.rows() == [(0, 5, 7), (0, 8, 10)]


def test_what_a_user_names_comes_first(ask) -> None:
    db = ask("diff/placed_pairs")
    db.table("aligned", "step bench_seq target_seq", "0 8 10", "0 9 11")
    db.table("renamed", "kind theirs ours", "call new old")
    db.table("bench_calls", "step seq name", "0 8 old", "0 9 other")
    db.table("target_calls", "step seq name", "0 10 other", "0 11 new")
    assert db.rows() == [(0, 8, 11)]
