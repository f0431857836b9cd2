from __future__ import annotations

import pytest

COLUMNS = "key context flipped gap_size"


def routing(ask, loud_flipped: int, loud_other: int, *, flipped: int = 6, others: int = 70):
    rows = [f"k {n} true {0.3 if n < loud_flipped else 0.02}" for n in range(flipped)]
    rows += [f"k {100 + n} false {0.3 if n < loud_other else 0.02}" for n in range(others)]
    return ask("rl/routing").table("clean_tokens", COLUMNS, *rows)


def test_loud_contexts_that_sit_at_flips(ask) -> None:
    ((contexts, flipped, loud, both, chance, tied),) = routing(ask, 3, 0).rows(
        "contexts flipped loud loud_flipped chance tied"
    )
    assert (contexts, flipped, loud, both, tied) == (76, 6, 3, 3, True)
    assert chance == pytest.approx(2 * (6 * 5 * 4) / (76 * 75 * 74))


@pytest.mark.parametrize(("at_flips", "elsewhere"), [(0, 3), (1, 0), (1, 12), (0, 0)])
def test_flips_alone_are_no_fault(ask, at_flips: int, elsewhere: int) -> None:
    assert routing(ask, at_flips, elsewhere).rows("tied") == [(False,)]


def test_a_context_counts_once_however_many_samples_share_it(ask) -> None:
    rows = ["k 1 true 0.3"] * 20 + [f"k {n} false 0.02" for n in range(2, 40)]
    db = ask("rl/routing").table("clean_tokens", COLUMNS, *rows)
    assert db.rows("flipped tied") == [(1, False)]


def test_without_routing(ask) -> None:
    assert ask("rl/routing").table("clean_tokens", COLUMNS, "k 1 - 0.3").rows() == []


def test_nothing(ask) -> None:
    assert ask("rl/routing").rows() == []
