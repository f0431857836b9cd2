from __future__ import annotations

CALLS = "step rank seq kind api group_ranks args"


def groups(ask, *calls: str) -> list[tuple[int, list[int]]]:
    """Return each rank's sets of ranks, after a look that each has a hash of its own."""
    rows = ask("comm/groups").table("calls", CALLS, *calls).rows()
    assert len({short for _, short, _ in rows}) == len({str(ranks) for _, _, ranks in rows})
    return sorted((rank, ranks) for rank, _, ranks in rows)


def test_each_set_of_ranks_once_for_a_rank(ask) -> None:
    ranks = "[0,1]", "[0,1]", "[2,3]", "[1,0]"
    calls = (f"{seq} 0 {seq} comm all_reduce {group} -" for seq, group in enumerate(ranks))
    found = groups(ask, *calls, "0 1 1 comm all_reduce [0,1] -")
    assert found == [(0, [0, 1]), (0, [1, 0]), (0, [2, 3]), (1, [0, 1])]


def test_those_of_the_operations_in_a_batch(ask) -> None:
    batch = (
        '{"input.0.0":{"class_type":"P2POp","op":"isend","group_ranks":[0,1]},'
        '"input.0.1":{"class_type":"P2POp","op":"irecv","group_ranks":null},'
        '"input.1":{"type":"int","group_ranks":[8,9]}}'
    )
    assert groups(ask, f"0 0 5 comm batch_isend_irecv - {batch}") == [(0, [0, 1])]


def test_no_group_and_no_communication_give_nothing(ask) -> None:
    calls = "0 0 5 comm all_reduce - -", "0 0 6 compute all_reduce [0,1] -"
    assert groups(ask, *calls) == []
    assert groups(ask) == []
