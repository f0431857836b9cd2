from __future__ import annotations

ORIGINS = "origin step rank by_rank seq name found"


def test_an_origin_without_record_is_there_from_the_beginning(ask) -> None:
    db = ask("nan/unrecorded_starts").table(
        "unrecorded_origins", ORIGINS, "0 2 3 0 17 sum.0 [nan]", "1 2 4 0 17 sum.0 [nan]"
    )
    assert db.rows() == [(0, 2, 3, -1, "sum.0", False), (1, 2, 4, -1, "sum.0", False)]


def test_the_call_of_another_rank_that_saw_it_says_nothing_about_when(ask) -> None:
    db = ask("nan/unrecorded_starts").table("unrecorded_origins", ORIGINS, "5 0 1 0 - - []")
    assert db.rows() == [(5, 0, 1, -1, None, False)]


def test_no_origin_gives_nothing(ask) -> None:
    assert ask("nan/unrecorded_starts").rows() == []
