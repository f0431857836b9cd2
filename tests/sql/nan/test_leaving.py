from __future__ import annotations

EDGES = "rank producer_step producer_seq step seq fate"
WAYS = "rank producer_step producer_seq step seq"


def leaving(ask, *edges: str, ways: tuple[str, ...] = (), phase: str = "backward"):
    db = ask("nan/leaving").table("edges", EDGES, *edges).table("ways", WAYS, *ways)
    db.table("calls", "step rank seq phase", *(f"0 {rank} 12 {phase}" for rank in (0, 1)))
    db.table("entry_tensors", "step rank seq", *(f"0 {rank} 12" for rank in (0, 1)))
    return db.rows()


def test_all_that_leads_to_a_communication_call(ask) -> None:
    found = leaving(ask, "0 0 4 0 5 sends", ways=("0 0 2 0 3", "0 0 3 0 4", "0 0 2 0 9"))
    assert found == [(0, 0, 2), (0, 0, 3), (0, 0, 4)]


def test_also_from_an_earlier_step_and_not_on_another_rank(ask) -> None:
    assert leaving(ask, "0 1 4 1 5 sends", ways=("0 0 3 1 4", "1 0 2 1 4")) == [
        (0, 0, 3),
        (1, 0, 4),
    ]


def test_not_what_is_carried_or_absorbed(ask) -> None:
    assert leaving(ask, "0 0 4 0 5 carries", "0 0 4 0 6 absorbs", ways=("0 0 4 0 5",)) == []
    assert leaving(ask) == []


def test_not_where_none_came_in_by_a_backward_call(ask) -> None:
    assert leaving(ask, "0 0 4 0 5 sends") == [(0, 0, 4)]
    assert leaving(ask, "2 0 4 0 5 sends") == []
    assert leaving(ask, "0 0 4 0 5 sends", phase="forward") == []
