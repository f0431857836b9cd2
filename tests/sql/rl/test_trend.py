from __future__ import annotations

import pytest


def test_a_row_a_step_with_tails(ask) -> None:
    db = ask("rl/trend").table("pairs", "pair step padding", "0 0 false", "1 3 false", "2 3 true")
    db.table(
        "pair_values",
        "key pair n sum sum_abs max_abs sum_k3 clipped",
        *("k 0 2 0.2 0.4 0.3 0.1 1", "k 1 4 -1 1 0.9 0.4 2", "k 2 9 9 9 9 9 9"),
    )
    db.table("clean_tokens", "key step gap", "k 0 0.1", "k 0 -0.3", "k 3 -0.5")
    first, second = db.rows("step n mean mean_abs max_abs p50 k1 k3 clip_share")
    assert first == (0, 2, 0.1, 0.2, 0.3, pytest.approx(0.2), -0.1, 0.05, 0.5)
    assert second == (3, 4, -0.25, 0.25, 0.9, 0.5, 0.25, 0.1, 0.5)


def test_only_log_probs(ask) -> None:
    db = ask("rl/trend").table("pairs", "pair step padding", "0 0 false")
    assert db.table("pair_values", "key pair n sum sum_abs", "reward 0 1 1 1").rows() == []


def test_nothing(ask) -> None:
    assert ask("rl/trend").rows() == []
