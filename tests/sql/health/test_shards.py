from __future__ import annotations

import pytest

FILES = "step rank path complete damage unfinished"
TENSORS = "step rank seq has_nan value_id"


def test_every_column_of_a_shard(ask) -> None:
    db = ask("health/shards")
    db.table("shard_files", FILES + " node", "2 1 step2/rank1 false cut killed n7")
    db.table("calls", "step rank seq", "2 1 0", "2 1 1")
    db.table("tensors", TENSORS, "2 1 0 false 8", "2 1 1 true 9", "2 1 1 - 9")
    assert db.rows() == [(2, 1, "step2/rank1", "n7", False, "cut", "killed", 2, 3, 2, True, None)]


def test_what_could_not_be_read_is_counted_as_nothing(ask) -> None:
    db = ask("health/shards").table("shard_files", FILES, "0 0 a true - -", "0 1 b - - -")
    assert db.rows() == [
        (0, 0, "a", None, True, None, None, 0, 0, 0, False, None),
        (0, 1, "b", None, None, None, None, 0, 0, 0, False, None),
    ]


def test_steps_and_ranks_are_counted_one_by_one_and_only_where_files_are(ask) -> None:
    db = ask("health/shards")
    db.table("shard_files", FILES, "1 0 c true - -", "0 1 b true - -", "0 0 a true - -")
    db.table("calls", "step rank seq", "0 0 0", "0 1 0", "0 1 1", "5 0 0")
    db.table("tensors", TENSORS, "0 1 0 true -", "1 0 0 false 8", "5 0 0 true 8")
    assert db.rows("step rank calls tensors judged lineage") == [
        (0, 0, 1, 0, 0, False),
        (0, 1, 2, 1, 1, False),
        (1, 0, 0, 1, 1, True),
    ]


@pytest.mark.parametrize(
    ("tensors", "judged", "lineage"),
    [
        (["0 0 0 - -", "0 0 0 - -"], 0, False),
        (["0 0 0 false -", "0 0 0 - -"], 1, False),
        (["0 0 0 - -", "0 0 0 - 8"], 0, True),
    ],
)
def test_what_is_not_recorded_of_tensors(
    ask, tensors: list[str], judged: int, lineage: bool
) -> None:
    db = ask("health/shards").table("shard_files", FILES, "0 0 a true - -")
    assert db.table("tensors", TENSORS, *tensors).rows("tensors judged lineage") == [
        (2, judged, lineage)
    ]


def test_no_file_gives_nothing(ask) -> None:
    assert ask("health/shards").rows() == []
