from __future__ import annotations


def missing(ask, *shards: str, ranks: int):
    db = ask("health/missing_ranks").table("shards", "step rank", *shards)
    return db.table("expected_ranks", "rank", *map(str, range(ranks))).rows()


def test_ranks_without_a_shard_in_each_step(ask) -> None:
    assert missing(ask, "0 0", "0 2", "3 1", ranks=4) == [
        (0, 1),
        (0, 3),
        (3, 0),
        (3, 2),
        (3, 3),
    ]


def test_a_rank_with_a_shard_in_another_step_only(ask) -> None:
    assert missing(ask, "0 0", "0 1", "1 0", ranks=2) == [(1, 1)]


def test_every_rank_left_a_shard(ask) -> None:
    assert missing(ask, "0 0", "0 1", ranks=2) == []


def test_a_step_without_any_shard_is_not_known_of(ask) -> None:
    assert missing(ask, ranks=2) == []


def test_nothing_on_record_gives_nothing(ask) -> None:
    assert ask("health/missing_ranks").rows() == []
