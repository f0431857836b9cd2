from __future__ import annotations

import math

import pytest

COLUMNS = "key gap p gap_size"


def test_signs_among_unlikely_and_likely(ask) -> None:
    rows = [
        "k 0.5 0.01 0.5",
        "k 0.4 0.02 0.5",
        "k -0.2 0.5 0.4",
        "k -0.1 0.6 0.2",
        "k 0.001 0.5 0.1",
    ]
    db = ask("rl/gap_signs").table("loud_tokens", COLUMNS, *rows)
    ((up, down, unlikely, raised, likely, lifted),) = db.rows(
        "up down unlikely unlikely_up likely likely_up"
    )
    assert (up, down, unlikely, raised, likely, lifted) == (0.5, 0.5, 2, 1.0, 2, 0.0)


def test_means_of_both_ratios(ask) -> None:
    db = ask("rl/gap_signs").table("loud_tokens", COLUMNS, "k 1 0.5 2", "k -1 0.5 2")
    assert db.rows("ratio_b ratio_a") == [
        (pytest.approx(math.cosh(1)), pytest.approx(math.cosh(1)))
    ]


def test_gaps_within_rounding_have_no_say(ask) -> None:
    assert ask("rl/gap_signs").table("loud_tokens", COLUMNS, "k 0.001 0.5 0.1").rows() == []


def test_nothing(ask) -> None:
    assert ask("rl/gap_signs").rows() == []


@pytest.mark.parametrize(("gaps", "unscaled"), [((-0.5, -1.0), 0.0), ((-0.5, -0.5), 0.1)])
def test_what_one_factor_leaves(ask, gaps: tuple[float, float], unscaled: float) -> None:
    rows = [f"k {gap} 0.5 1 {a}" for gap, a in zip(gaps, (-1.0, -2.0), strict=True)]
    db = ask("rl/gap_signs").table("loud_tokens", f"{COLUMNS} a", *rows)
    assert db.rows("unscaled") == [(pytest.approx(unscaled),)]
