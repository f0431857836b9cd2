from __future__ import annotations

STARTS = "origin step rank seq name received"
UNRECORDED = "origin step rank by_rank seq name"


def test_origins_on_record_as_they_are(ask) -> None:
    db = ask("nan/starts").table(
        "known_starts", STARTS, "0 2 1 3 log.0 false", "1 2 1 5 sum.0 true"
    )
    assert db.rows() == [(0, 2, 1, 3, "log.0", False), (1, 2, 1, 5, "sum.0", True)]


def test_an_origin_without_record_is_there_from_the_beginning(ask) -> None:
    db = ask("nan/starts").table("unrecorded_origins", UNRECORDED, "0 2 3 0 17 sum.0")
    assert db.rows() == [(0, 2, 3, -1, "sum.0", False)]


def test_both_in_order(ask) -> None:
    db = ask("nan/starts").table("known_starts", STARTS, "0 2 4 3 log.0 false")
    db.table("unrecorded_origins", UNRECORDED, "2 2 1 0 17 sum.1", "1 2 3 0 17 sum.0")
    assert db.rows("origin rank") == [(0, 4), (1, 3), (2, 1)]


def test_no_origin_gives_nothing(ask) -> None:
    assert ask("nan/starts").rows() == []
