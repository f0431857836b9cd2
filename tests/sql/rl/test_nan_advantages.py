from __future__ import annotations

import pytest

PAIRS = "pair step uid padding"
VALUES = "key pair nan_a nan_b sum_b"


@pytest.mark.parametrize(("second", "equal"), [("0.5", True), ("0.7", False)])
def test_groups_with_their_rewards(ask, second: str, equal: bool) -> None:
    db = ask("rl/nan_advantages").table("pairs", PAIRS, "0 0 u false", "1 0 u false", "2 0 v false")
    db.table(
        "pair_values",
        VALUES,
        *("reward 0 0 0 0.5", f"reward 1 0 0 {second}", "reward 2 0 0 1"),
        *("advantages 0 0 3 -", "advantages 1 0 3 -", "advantages 2 0 0 -"),
    )
    assert db.rows() == [(0, "u", 2, False, True, equal)]


def test_on_both_sides_alike(ask) -> None:
    db = ask("rl/nan_advantages").table("pairs", PAIRS, "0 0 u false")
    assert db.table("pair_values", VALUES, "advantages 0 2 2 -").rows() == []


def test_nothing(ask) -> None:
    assert ask("rl/nan_advantages").rows() == []
