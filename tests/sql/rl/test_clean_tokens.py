from __future__ import annotations

import math

import pytest

TOKENS = "key pair step rank token id context a b"
FACTS = "pair prompt_differs prompt_moved fits_a fits_b"


def test_gap_probability_and_size(ask) -> None:
    db = ask("rl/clean_tokens").table("tokens", TOKENS, "k 0 0 0 1 5 9 -1 -1.5")
    ((gap, p, size),) = db.rows("gap p gap_size")
    assert gap == -0.5
    assert p == pytest.approx(math.exp(-1.25))
    assert size == pytest.approx(0.5 / (1 - math.exp(-1.25)))


def test_likely_tokens_have_no_size(ask) -> None:
    db = ask("rl/clean_tokens").table("tokens", TOKENS, "k 0 0 0 1 5 9 -0.01 -0.02")
    assert db.rows("gap_size") == [(None,)]


def test_samples_that_structure_explains_leave(ask) -> None:
    db = ask("rl/clean_tokens").table(
        "tokens", TOKENS, *(f"k {n} 0 0 1 5 9 -1 -2" for n in range(3))
    )
    db.table(
        "pair_facts", FACTS, "0 true - - -", "1 false true true false", "2 false true true true"
    )
    assert db.rows("pair") == [(2,)]


def test_nothing(ask) -> None:
    assert ask("rl/clean_tokens").rows() == []
