from __future__ import annotations

import pytest

PAIRS = "pair step uid sample padding a_rank"
VALUES = "key pair n sum sum_abs max_abs max_token differ nan_a nan_b"
SUMS = "sum_ratio sum_k2 sum_k3 clipped sum_a sum_b sum_aa sum_bb sum_ab"


def test_means_and_the_largest(ask) -> None:
    db = ask("rl/key_numbers").table("pairs", PAIRS, "0 0 u 0 false 0", "1 2 v 3 false 1")
    db.table("pair_values", VALUES, "k 0 2 0.2 0.4 0.3 1 2 0 0", "k 1 2 -0.6 0.6 0.5 4 1 1 0")
    ((n, mean, mean_abs, most, step, rank, uid, sample, token, k1),) = db.rows(
        "n mean mean_abs max_abs step rank uid sample token k1"
    )
    assert (n, most, step, rank, uid, sample, token, k1) == (4, 0.5, 2, 1, "v", 3, 4, None)
    assert (mean, mean_abs) == (pytest.approx(-0.1), pytest.approx(0.25))


def test_estimators_ratio_and_correlation(ask) -> None:
    db = ask("rl/key_numbers").table("pairs", PAIRS, "0 0 u 0 false 0")
    # a = -1, -2; b = -1.5, -2.5: a constant gap of -0.5
    db.table(
        "pair_values",
        f"{VALUES} {SUMS}",
        "k 0 2 -1 1 0.5 0 2 0 0 -0.787 0.25 0.213 2 -3 -4 5 8.5 6.5",
    )
    ((k1, k2, k3, ratio, clipped, pearson),) = db.rows("k1 k2 k3 mean_ratio clip_share pearson")
    assert (k1, k2, clipped) == (0.5, 0.125, 1.0)
    assert k3 == pytest.approx(0.1065)
    assert ratio == pytest.approx(0.6065)
    assert pearson == pytest.approx(1.0)


def test_one_token_has_no_correlation(ask) -> None:
    db = ask("rl/key_numbers").table("pairs", PAIRS, "0 0 u 0 false 0")
    db.table("pair_values", f"{VALUES} {SUMS}", "k 0 1 0 0 0 0 0 0 0 0 0 0 0 -1 -1 1 1 1")
    assert db.rows("n pearson") == [(1, None)]


def test_padding_is_not_counted(ask) -> None:
    db = ask("rl/key_numbers").table("pairs", PAIRS, "0 0 u 0 true 0")
    assert db.table("pair_values", VALUES, "k 0 2 0.2 0.4 0.3 1 2 0 0").rows() == []


def test_no_number_that_counts(ask) -> None:
    db = ask("rl/key_numbers").table("pairs", PAIRS, "0 0 u 0 false 0")
    db.table("pair_values", VALUES, "k 0 0 0 0 0 0 0 0 0")
    assert db.rows("n mean max_abs token") == [(0, None, None, None)]


def test_nothing(ask) -> None:
    assert ask("rl/key_numbers").rows() == []
