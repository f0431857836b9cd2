from __future__ import annotations

import duckdb

CALLS = "step rank seq kind api args"
USES = "step rank group_id of_seq ranks"


def groups(ask, *calls: str, uses: tuple[str, ...] = ()) -> list[tuple[int, list[int]]]:
    """Return each rank's sets of ranks, after a look that each has a hash of its own."""
    rows = ask("comm/groups").table("calls", CALLS, *calls).table("group_uses", USES, *uses).rows()
    assert len({short for _, short, _ in rows}) == len({str(ranks) for _, _, ranks in rows})
    return sorted((rank, ranks) for rank, _, ranks in rows)


def test_each_set_of_ranks_once_for_a_rank(ask) -> None:
    uses = "0 0 g - [0,1]", "1 0 g - [0,1]", "0 0 h - [2,3]", "0 0 - 7 [1,0]", "0 1 g - [0,1]"
    assert groups(ask, uses=uses) == [(0, [0, 1]), (0, [1, 0]), (0, [2, 3]), (1, [0, 1])]


def test_every_column_of_a_group(ask) -> None:
    short = duckdb.sql("SELECT hash([0, 1]::BIGINT[])").fetchall()[0][0]
    db = ask("comm/groups").table("group_uses", USES, "2 1 g - [0,1]")
    assert db.rows() == [(1, short, [0, 1])]


def test_those_of_the_operations_in_a_batch(ask) -> None:
    batch = (
        '{"input.0.0":{"class_type":"P2POp","op":"isend","group_ranks":[0,1]},'
        '"input.0.1":{"class_type":"P2POp","op":"irecv","group_ranks":null},'
        '"input.1":{"type":"int","group_ranks":[8,9]}}'
    )
    assert groups(ask, f"0 0 5 comm batch_isend_irecv {batch}") == [(0, [0, 1])]
    assert groups(ask, f"0 0 5 compute batch_isend_irecv {batch}") == []
    assert groups(ask, f"0 0 5 comm all_reduce {batch}") == []


def test_no_group_and_no_communication_give_nothing(ask) -> None:
    assert groups(ask, "0 0 5 comm all_reduce -", "0 0 6 compute all_reduce -") == []
    assert groups(ask) == []
