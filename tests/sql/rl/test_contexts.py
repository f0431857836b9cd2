from __future__ import annotations

import math

import pytest

COLUMNS = "key pair context id a b gap p"
DRAWN = [(c, i, -0.5 - 0.7 * i - 0.1 * c) for c in range(4) for i in range(3)]


def contexts(ask, b):
    rows = [
        f"k 0 {c} {i} {a} {b(c, a)} {b(c, a) - a} {math.exp((a + b(c, a)) / 2)}"
        for c, i, a in DRAWN
    ]
    (found,) = (
        ask("rl/contexts")
        .table("loud_tokens", COLUMNS, *rows)
        .rows("contexts tokens rest quiet slope unexplained")
    )
    return found


def test_one_temperature_explains_all(ask) -> None:
    count, tokens, _, quiet, slope, unexplained = contexts(
        ask, lambda c, a: 0.7 * a - 0.3 + 0.05 * c
    )
    assert (count, tokens, quiet) == (4, 12, False)
    assert slope == pytest.approx(0.7)
    assert unexplained == pytest.approx(0.0, abs=1e-9)


def test_a_missing_renormalisation_is_the_same_for_all_tokens_of_a_context(ask) -> None:
    *_, rest, quiet, slope, _ = contexts(ask, lambda c, a: a - 0.3 - 0.1 * c)
    assert rest == pytest.approx(0.0, abs=1e-9)
    assert quiet
    assert slope == pytest.approx(1.0)


def test_a_context_with_one_token_tells_nothing(ask) -> None:
    rows = ["k 0 1 5 -1 -2 -1 0.2", "k 1 2 5 -1 -2 -1 0.2"]
    assert ask("rl/contexts").table("loud_tokens", COLUMNS, *rows).rows() == []


def test_nothing(ask) -> None:
    assert ask("rl/contexts").rows() == []
