from __future__ import annotations

import pytest

MEMBERS = "step instance rank recorded name"
SHARDS = "step rank complete"


def test_a_whole_shard_without_the_call_that_the_others_made(ask) -> None:
    db = ask("health/partner_missing").table(
        "members", MEMBERS, "0 i 0 false -", "0 i 2 true sum.7", "0 i 1 true sum.4"
    )
    db.table("shards", SHARDS, "0 0 true", "0 1 true", "0 2 true")
    assert db.rows() == [(0, "i", 0, 1, "sum.4")]


@pytest.mark.parametrize(
    "shards",
    [[], ["0 0 false"], ["0 0 -"], ["1 0 true"], ["0 1 true"]],
    ids=["no shard", "a cut one", "not recorded", "in another step", "of another rank"],
)
def test_not_of_a_rank_without_a_whole_shard(ask, shards: list[str]) -> None:
    db = ask("health/partner_missing")
    db.table("members", MEMBERS, "0 i 0 false -", "0 i 1 true sum.4")
    assert db.table("shards", SHARDS, *shards).rows() == []


def test_not_where_every_member_made_the_call(ask) -> None:
    db = ask("health/partner_missing")
    db.table("members", MEMBERS, "0 i 0 true sum.7", "0 i 1 true sum.4")
    assert db.table("shards", SHARDS, "0 0 true", "0 1 true").rows() == []


def test_each_instance_and_member_in_order(ask) -> None:
    db = ask("health/partner_missing").table(
        "members",
        MEMBERS,
        "1 i 0 false -",
        "1 i 1 true sum.9",
        "0 j 0 true sum.1",
        "0 j 2 false -",
        "0 j 1 false -",
        "0 i 0 false -",
        "0 i 1 true sum.4",
    )
    db.table("shards", SHARDS, *(f"{step} {rank} true" for step in (0, 1) for rank in (0, 1, 2)))
    assert db.rows() == [
        (0, "i", 0, 1, "sum.4"),
        (0, "j", 1, 0, "sum.1"),
        (0, "j", 2, 0, "sum.1"),
        (1, "i", 0, 1, "sum.9"),
    ]


def test_nothing_on_record_gives_nothing(ask) -> None:
    assert ask("health/partner_missing").rows() == []
