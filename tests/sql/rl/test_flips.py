from __future__ import annotations


def test_sums_of_each_step_and_rank(ask) -> None:
    db = ask("rl/flips").table("pairs", "pair step a_rank", "0 0 0", "1 0 0", "2 1 0")
    db.table("pair_facts", "pair routed flipped", "0 8 0", "1 8 2", "2 - -")
    assert db.rows() == [(0, 0, 16, 2, 1)]


def test_nothing(ask) -> None:
    assert ask("rl/flips").rows() == []
