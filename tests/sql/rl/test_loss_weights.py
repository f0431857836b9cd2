from __future__ import annotations

import pytest

COLUMNS = "key entry step same_samples value_1 value_2 counted"


def spreads(ask, *losses: tuple[float, float, int]):
    rows = [f"loss '' 0 true {a} {b} {tokens}" for a, b, tokens in losses]
    return ask("rl/loss_weights").table("arrays", COLUMNS, *rows).rows()


def test_a_ratio_that_goes_with_the_tokens(ask) -> None:
    ((_, batches, _, spread, times, over),) = spreads(ask, (1, 0.1, 10), (2, 0.4, 20), (1, 0.3, 30))
    assert batches == 3
    assert over == pytest.approx(0, abs=1e-9)
    assert spread > 0.5
    assert times > 0.5


def test_a_constant_ratio(ask) -> None:
    ((_, _, ratio, spread, _, _),) = spreads(ask, (1, 4, 10), (2, 8, 20))
    assert (ratio, spread) == (4.0, 0.0)


def test_losses_of_other_samples_and_of_zero_tell_nothing(ask) -> None:
    rows = ["loss '' 0 false 1 2 10", "loss '' 0 true 0 0 10", "grad_norm '' 0 true 1 2 10"]
    assert ask("rl/loss_weights").table("arrays", COLUMNS, *rows).rows() == []


def test_nothing(ask) -> None:
    assert ask("rl/loss_weights").rows() == []
