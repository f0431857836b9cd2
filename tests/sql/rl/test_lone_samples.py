from __future__ import annotations

from .test_pairs import COLUMNS, sample

PAIRS = "pair step padding a_part a_micro a_place b_part b_micro b_place"


def test_why_a_sample_has_no_partner(ask) -> None:
    db = ask("rl/lone_samples").table(
        "named_samples",
        COLUMNS,
        sample("a", 0, "1"),
        sample("b", 0, "1"),
        sample("a", 1, "2"),
        sample("a", 2, "3", counted=0),
        sample("b", 5, "1", step=4),
    )
    db.table("pairs", PAIRS, "0 0 false 0 0 0 0 0 0")
    assert db.rows("side step place why") == [
        ("a", 0, 1, "missing"),
        ("a", 0, 2, "padding"),
        ("b", 4, 5, "step"),
    ]


def test_an_empty_pair_is_padding_on_both_sides(ask) -> None:
    db = ask("rl/lone_samples").table(
        "named_samples", COLUMNS, sample("a", 0, "1"), sample("b", 0, "1")
    )
    db.table("pairs", PAIRS, "0 0 true 0 0 0 0 0 0")
    assert db.rows("side why") == [("a", "padding"), ("b", "padding")]


def test_nothing(ask) -> None:
    assert ask("rl/lone_samples").rows() == []
