from __future__ import annotations

import pytest

COLUMNS = "key pair step rank token id context gap_size"


def tokens(size: float, count: int = 8, rank: int = 0) -> list[str]:
    return [f"k 0 0 {rank} {n} 1 {n} {size}" for n in range(count)]


def noise(ask, *rows: str):
    return ask("rl/noise").table("clean_tokens", COLUMNS, *rows)


def test_level_is_a_robust_deviation(ask) -> None:
    ((key, step, rank, count, level, loud),) = noise(
        ask, *tokens(0.01, 9), "k 0 0 0 9 1 9 7.0"
    ).rows()
    assert (key, step, rank, count, loud) == ("k", 0, 0, 10, False)
    assert level == pytest.approx(0.014826)


def test_each_rank_is_judged_alone(ask) -> None:
    db = noise(ask, *tokens(0.01), *tokens(0.1, rank=1))
    assert db.rows("rank loud") == [(0, False), (1, True)]


def test_a_coarser_format_raises_the_floor(ask) -> None:
    db = ask("rl/noise", eps=2.0**-4).table("clean_tokens", COLUMNS, *tokens(0.1))
    assert db.rows("loud") == [(False,)]


def test_a_few_tokens_tell_nothing(ask) -> None:
    assert noise(ask, *tokens(5.0, 7), "k 0 0 0 9 1 9 -").rows("tokens loud") == [(8, None)]


def test_where_no_rank_has_enough_all_are_judged_together(ask) -> None:
    db = noise(ask, *tokens(0.1, 5), *tokens(0.1, 5, rank=1), *tokens(0.01, rank=2))
    assert db.rows("rank loud") == [(0, True), (1, True), (2, False)]
    assert db.rows("level")[0] == pytest.approx((0.14826,))


def test_nothing(ask) -> None:
    assert ask("rl/noise").rows() == []
