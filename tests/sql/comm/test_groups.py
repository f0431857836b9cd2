from __future__ import annotations

import duckdb

CALLS = "step rank seq kind api args"
USES = "step rank group_id of_seq ranks_hash ranks"


def groups(ask, *calls: str, uses: tuple[str, ...] = ()) -> list[list[int]]:
    """Return the sets of ranks, after a look that each has a hash of its own."""
    rows = ask("comm/groups").table("calls", CALLS, *calls).table("group_uses", USES, *uses).rows()
    assert len({short for short, _ in rows}) == len(rows)
    return sorted(ranks for _, ranks in rows)


def test_each_set_of_ranks_once(ask) -> None:
    of_steps = "0 0 g - 5 [0,1]", "1 0 g - 5 [0,1]", "0 1 g - 5 [0,1]"
    others = "0 0 h - 6 [2,3]", "0 0 - 7 8 [1,0]"
    assert groups(ask, uses=(*of_steps, *others)) == [[0, 1], [1, 0], [2, 3]]


def test_every_column_of_a_group(ask) -> None:
    db = ask("comm/groups").table("group_uses", USES, "2 1 g - 5 [0,1]")
    assert db.rows() == [(5, [0, 1])]


def test_those_of_the_operations_in_a_batch(ask) -> None:
    batch = (
        '{"input.0.0":{"class_type":"P2POp","op":"isend","group_ranks":[0,1]},'
        '"input.0.1":{"class_type":"P2POp","op":"irecv","group_ranks":null},'
        '"input.1":{"type":"int","group_ranks":[8,9]}}'
    )
    short = duckdb.sql("SELECT hash([0, 1]::BIGINT[])").fetchall()[0][0]
    call = f"0 0 5 comm batch_isend_irecv {batch}"
    assert groups(ask, call) == [[0, 1]]
    assert groups(ask, call, uses=(f"0 0 g - {short} [0,1]",)) == [[0, 1]]
    assert groups(ask, f"0 0 5 compute batch_isend_irecv {batch}") == []
    assert groups(ask, f"0 0 5 comm all_reduce {batch}") == []


def test_no_group_and_no_communication_give_nothing(ask) -> None:
    assert groups(ask, "0 0 5 comm all_reduce -", "0 0 6 compute all_reduce -") == []
    assert groups(ask) == []
