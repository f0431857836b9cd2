from __future__ import annotations

INSTANCES = "step rank group_key ranks_hash source target"


def members(ask, *instances: str, groups: tuple[str, ...] = (), ranks: int = 3):
    db = ask("comm/group_members").table("instances", INSTANCES, *instances)
    db.table("groups", "ranks_hash ranks", *groups)
    return db.table("expected_ranks", "rank", *map(str, range(ranks)))


def test_every_column_with_the_place_in_the_group_from_zero(ask) -> None:
    db = members(ask, "2 5 g 77 - -", groups=("77 [5,2,9]", "78 [0,1]"))
    assert db.rows() == [(2, "g", 2, 1), (2, "g", 5, 0), (2, "g", 9, 2)]


def test_once_though_it_was_used_often_and_all_ranks_sent_the_group(ask) -> None:
    used = "0 0 g 7 - -", "0 0 g 7 - -", "0 1 g 7 - -"
    db = members(ask, *used, groups=("7 [0,1]", "7 [0,1]"))
    assert db.rows() == [(0, "g", 0, 0), (0, "g", 1, 1)]


def test_whoever_any_of_its_ranks_names(ask) -> None:
    db = members(ask, "0 0 g 7 - -", "0 1 g 8 - -", groups=("7 [0,1,2]", "8 [0,1]"))
    assert db.rows("rank place") == [(0, 0), (1, 1), (2, 2)]
    db = members(ask, "0 0 g 7 - -", "0 3 g 8 - -", groups=("7 [0,1]", "8 [3,2]"))
    assert db.rows("rank place") == [(0, 0), (1, 1), (2, 1), (3, 0)]


def test_all_ranks_where_no_group_is_named(ask) -> None:
    db = members(ask, "0 2 '' - - -", "1 0 '' - - -", ranks=2)
    assert db.rows() == [(0, "", 0, 0), (0, "", 1, 1), (1, "", 0, 0), (1, "", 1, 1)]


def test_whoever_used_a_group_whose_ranks_nobody_names(ask) -> None:
    db = members(ask, "0 3 g - - -", "0 1 g - - -", "0 1 g - - -", "1 2 g - - -")
    assert db.rows() == [(0, "g", 1, 0), (0, "g", 3, 1), (1, "g", 2, 0)]


def test_not_whoever_used_it_where_one_names_its_ranks(ask) -> None:
    db = members(ask, "0 3 g - - -", "0 1 g 7 - -", groups=("7 [1,2]",))
    assert db.rows("rank place") == [(1, 0), (2, 1)]


def test_transfers_have_their_own_two_members(ask) -> None:
    assert members(ask, "0 0 g 7 0 1", groups=("7 [0,1,2]",)).rows() == []


def test_nothing_used_gives_nothing(ask) -> None:
    assert members(ask, groups=("7 [0,1]",)).rows() == []
