from __future__ import annotations

COLUMNS = "key pair step rank token id context a b"
NUMBERS = [-1.0, -3.1, -0.7, -2.2, -1.9, -0.4, -2.8, -1.4, -0.9, -3.3, -1.1, -2.5]


def test_the_shift_that_makes_both_sides_agree(ask) -> None:
    rows = [f"k 0 0 0 {t} 1 {t} {NUMBERS[t + 1]} {NUMBERS[t]}" for t in range(11)]
    found = ask("rl/shifts").table("loud_tokens", COLUMNS, *rows).rows("shift tokens quiet")
    assert found == [(-2, 9, False), (-1, 10, False), (0, 11, False), (1, 10, True), (2, 9, False)]


def test_sides_that_agree_as_they_are(ask) -> None:
    rows = [f"k 0 0 0 {t} 1 {t} {x} {x}" for t, x in enumerate(NUMBERS)]
    found = ask("rl/shifts").table("loud_tokens", COLUMNS, *rows).rows("shift quiet")
    assert [shift for shift, quiet in found if quiet] == [0]


def test_other_samples_are_not_neighbours(ask) -> None:
    rows = [f"k {t} 0 0 {t} 1 {t} -1 -1" for t in range(11)]
    assert ask("rl/shifts").table("loud_tokens", COLUMNS, *rows).rows("shift") == [(0,)]


def test_nothing(ask) -> None:
    assert ask("rl/shifts").rows() == []
