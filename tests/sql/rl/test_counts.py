from __future__ import annotations


def test_samples_steps_and_ranks(ask) -> None:
    db = ask("rl/counts").table("pairs", "pair padding", "0 false", "1 true")
    db.table("samples", "side", "a", "a", "b")
    db.table("keys", "side step rank key", "a 0 0 x", "a 2 1 x", "b 0 0 x")
    assert db.rows() == [(1, 2, 1, [0, 2], 2, 1)]


def test_nothing(ask) -> None:
    assert ask("rl/counts").rows() == [(0, 0, 0, [], 0, 0)]
