from __future__ import annotations

INSTANCES = "step instance rank seq item group_key source target"
MEMBERS = "step group_key rank place"
OPERATIONS = (
    "step rank seq item name api root sends async reduce_op reads fills read_bad made_bad "
    "bad_parts read_max dtype shape fill_shape in_backward"
)
SUM = "all_reduce 3 false true SUM true true false true [1] 5 float16 [2] [3] true"


def test_every_column_of_a_member_with_and_without_record(ask) -> None:
    db = ask("comm/members").table("instances", INSTANCES, "2 g#0 1 5 0 g - -")
    db.table("group_members", MEMBERS, "2 g 1 0", "2 g 3 1")
    db.table("operations", OPERATIONS, f"2 1 5 0 sum.4 {SUM}")
    assert db.rows() == [
        (
            *(2, "g#0", False, 1, 0, True, 5, 0, "sum.4", "all_reduce", 3, False, True, "SUM"),
            *(True, True, False, True, [1], 5.0, "float16", [2], [3], True),
        ),
        (2, "g#0", False, 3, 1, False, *[None] * 18),
    ]


def test_a_rank_on_record_that_took_no_part(ask) -> None:
    db = ask("comm/members").table(
        "instances",
        INSTANCES,
        "0 g#0 0 5 0 g - -",
        "0 g#1 0 6 0 g - -",
        "0 g#0 1 6 0 g - -",
        "1 g#0 1 9 0 g - -",
    )
    db.table("group_members", MEMBERS, "0 g 0 0", "0 g 1 1", "1 g 0 0", "1 g 1 1")
    assert db.rows("step instance rank recorded seq") == [
        (0, "g#0", 0, True, 5),
        (0, "g#0", 1, True, 6),
        (0, "g#1", 0, True, 6),
        (0, "g#1", 1, False, None),
        (1, "g#0", 0, False, None),
        (1, "g#0", 1, True, 9),
    ]


def test_a_sender_stands_before_its_receiver(ask) -> None:
    db = ask("comm/members").table(
        "instances", INSTANCES, "0 5>2#0 5 3 0 g 5 2", "0 5>2#0 2 4 0 g 5 2"
    )
    db.table("group_members", MEMBERS, "0 g 2 0", "0 g 5 1")
    assert db.rows("rank place recorded") == [(2, 1, True), (5, 0, True)]


def test_each_operation_of_a_batch_with_its_own_columns(ask) -> None:
    db = ask("comm/members").table("instances", INSTANCES, "0 a 0 5 0 g 0 1", "0 b 0 5 1 g 0 2")
    db.table(
        "operations", "step rank seq item api sends", "0 0 5 0 isend true", "0 0 5 1 irecv false"
    )
    assert db.rows("instance point_to_point rank recorded item api sends") == [
        ("a", True, 0, True, 0, "isend", True),
        ("a", True, 1, False, None, None, None),
        ("b", True, 0, True, 1, "irecv", False),
        ("b", True, 2, False, None, None, None),
    ]


def test_what_is_not_recorded_of_an_operation_stays_unknown(ask) -> None:
    db = ask("comm/members").table("instances", INSTANCES, "0 g#0 0 5 0 g - -")
    db.table("group_members", MEMBERS, "0 g 0 0")
    db.table("operations", "step rank seq item name", "0 0 5 0 sum.4")
    assert db.rows("recorded name root async reduce_op read_max dtype shape in_backward") == [
        (True, "sum.4", *[None] * 7)
    ]


def test_no_instance_gives_nothing(ask) -> None:
    assert ask("comm/members").rows() == []
