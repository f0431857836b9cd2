from __future__ import annotations

ORIGINS = "origin step rank seq name members"


def test_an_origin_of_a_rank_begins_there(ask) -> None:
    db = ask("nan/known_starts").table("origins", ORIGINS, "0 2 1 3 log.0 []", "1 2 3 5 log.1 []")
    assert db.rows() == [(0, 2, 1, 3, "log.0", False), (1, 2, 3, 5, "log.1", False)]


def test_an_origin_in_a_communication_call_begins_at_every_rank_that_got_it(ask) -> None:
    db = ask("nan/known_starts").table(
        "origins",
        ORIGINS,
        "4 2 0 3 sum.0 [{'rank':2,'seq':8,'call':sum.9},{'rank':0,'seq':3,'call':sum.0}]",
    )
    assert db.rows() == [(4, 2, 0, 3, "sum.0", True), (4, 2, 2, 8, "sum.9", True)]


def test_a_communication_call_that_one_rank_got_it_out_of(ask) -> None:
    members = "[{'rank':1,'seq':3,'call':recv.0}]"
    db = ask("nan/known_starts").table("origins", ORIGINS, f"0 0 1 3 recv.0 {members}")
    assert db.rows() == [(0, 0, 1, 3, "recv.0", True)]


def test_no_origin_gives_nothing(ask) -> None:
    assert ask("nan/known_starts").rows() == []
