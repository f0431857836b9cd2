from __future__ import annotations

import duckdb
import pytest

CALLS = "step rank seq kind group_id group_ranks"
RANKS_0_1 = duckdb.sql("SELECT hash([0, 1]::BIGINT[])").fetchall()[0][0]


def uses(ask, *calls: str):
    return ask("comm/group_uses").table("calls", CALLS, *calls)


def test_every_column_of_a_group(ask) -> None:
    assert uses(ask, "2 1 5 comm g [0,1]").rows() == [(2, 1, "g", None, RANKS_0_1, [0, 1])]


def test_each_group_once_for_a_step_and_rank(ask) -> None:
    calls = "0 0 5 comm g [0,1]", "0 0 6 comm h [0,2]", "0 0 7 comm g [0,1]", "0 1 5 comm g [0,1]"
    db = uses(ask, *calls, "1 0 5 comm g [0,1]")
    assert db.rows("step rank group_id ranks") == [
        (0, 0, "g", [0, 1]),
        (0, 0, "h", [0, 2]),
        (0, 1, "g", [0, 1]),
        (1, 0, "g", [0, 1]),
    ]


def test_groups_of_the_same_ranks_are_told_apart_and_hash_alike(ask) -> None:
    db = uses(ask, "0 0 5 comm g [0,1]", "0 0 6 comm h [0,1]")
    assert db.rows("group_id ranks_hash") == [("g", RANKS_0_1), ("h", RANKS_0_1)]


def test_without_an_id_each_call_may_be_in_another_group(ask) -> None:
    calls = "0 0 5 comm - [0,1]", "0 0 6 comm - [0,2]", "0 0 7 comm - [0,1]", "0 0 8 comm g [0,3]"
    assert uses(ask, *calls).rows("group_id of_seq ranks") == [
        (None, 5, [0, 1]),
        (None, 6, [0, 2]),
        (None, 7, [0, 1]),
        ("g", None, [0, 3]),
    ]


@pytest.mark.parametrize("group", ["g", "-"])
def test_not_a_group_whose_ranks_are_not_on_record(ask, group: str) -> None:
    assert uses(ask, f"0 0 5 comm {group} -").rows() == []


@pytest.mark.parametrize("kind", ["compute", "module", "optimizer", "saved"])
def test_communication_alone(ask, kind: str) -> None:
    db = uses(ask, f"0 0 5 {kind} g [0,1]", "0 0 6 comm g [0,2]")
    assert db.rows("group_id ranks") == [("g", [0, 2])]


def test_no_call_gives_nothing(ask) -> None:
    assert ask("comm/group_uses").rows() == []
