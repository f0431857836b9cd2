from __future__ import annotations

WAYS = "rank producer_step producer_seq step seq"


def test_everything_on_the_way_to_a_loose_end(ask) -> None:
    db = ask("nan/alive").table("loose_ends", "step rank seq", "0 0 9")
    db.table("ways", WAYS, "0 0 3 0 5", "0 0 4 0 5", "0 0 5 0 9")
    assert db.rows() == [(0, 0, 3), (0, 0, 4), (0, 0, 5), (0, 0, 9)]


def test_a_loose_end_without_a_way_to_it(ask) -> None:
    assert ask("nan/alive").table("loose_ends", "step rank seq", "0 0 9").rows() == [(0, 0, 9)]


def test_what_leads_elsewhere_or_comes_after_is_not_alive(ask) -> None:
    db = ask("nan/alive").table("loose_ends", "step rank seq", "0 0 5")
    db.table("ways", WAYS, "0 0 3 0 4", "0 0 5 0 6", "1 0 3 0 5", "0 1 3 1 5")
    assert db.rows() == [(0, 0, 5)]


def test_a_value_that_lives_on_in_a_later_step(ask) -> None:
    db = ask("nan/alive").table("loose_ends", "step rank seq", "1 0 9")
    assert db.table("ways", WAYS, "0 0 3 1 9").rows() == [(0, 0, 3), (1, 0, 9)]


def test_ways_that_meet_again_give_one_row_a_call(ask) -> None:
    db = ask("nan/alive").table("loose_ends", "step rank seq", "0 0 9", "0 0 8")
    db.table("ways", WAYS, "0 0 3 0 8", "0 0 3 0 9", "0 0 8 0 9")
    assert db.rows() == [(0, 0, 3), (0, 0, 8), (0, 0, 9)]


def test_no_loose_end_gives_nothing(ask) -> None:
    assert ask("nan/alive").table("ways", WAYS, "0 0 3 0 5").rows() == []


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/alive").rows() == []
