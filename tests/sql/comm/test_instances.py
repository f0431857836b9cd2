from __future__ import annotations

import re

import pytest

OPERATIONS = "step rank seq item api group_id ranks_hash group_seq peer tag sends"


def instances(ask, *operations: str, ranks: int = 4):
    """Return the question for operations whose group's ranks are written out, as [0,1]."""
    named = sorted(set(re.findall(r"\[\S+\]", " ".join(operations))))
    for number, group in enumerate(named):
        operations = tuple(row.replace(group, str(number)) for row in operations)
    db = ask("comm/instances").table("operations", OPERATIONS, *operations)
    db.table("groups", "ranks_hash ranks", *(f"{n} {group}" for n, group in enumerate(named)))
    return db.table("expected_ranks", "rank", *map(str, range(ranks)))


def groups(db) -> list[list[tuple[int, int]]]:
    """Return (rank, seq) of those that are one instance, for each of them."""
    found: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for step, instance, rank, seq in db.rows("step instance rank seq"):
        found.setdefault((step, instance), []).append((rank, seq))
    return sorted(map(sorted, found.values()))


def collective(place: str, group: str = "- -", number: str = "-") -> str:
    return f"{place} 0 all_reduce {group} {number} - - false"


def transfer(place: str, api: str, peer: int, *, item: int = 0, group="- -", tag="-") -> str:
    sends = str("send" in api).lower()
    return f"{place} {item} {api} {group} - {peer} {tag} {sends}"


class TestCollectives:
    def test_every_column(self, ask) -> None:
        db = instances(ask, collective("2 1 5", "g [1,3]", "0"))
        assert db.rows() == [(2, "g#0", 1, 5, 0, "g", 0, None, None)]

    def test_pair_by_their_number_in_the_group(self, ask) -> None:
        db = instances(
            ask,
            collective("0 0 5", "g [0,1]", "0"),
            collective("0 0 9", "g [0,1]", "1"),
            collective("0 1 30", "g [0,1]", "1"),
            collective("0 1 20", "g [0,1]", "0"),
        )
        assert groups(db) == [[(0, 5), (1, 20)], [(0, 9), (1, 30)]]

    def test_groups_are_counted_one_by_one(self, ask) -> None:
        db = instances(
            ask,
            collective("0 0 5", "g [0,1]"),
            collective("0 0 6", "h [0,2]"),
            collective("0 0 7", "g [0,1]"),
            collective("0 1 8", "g [0,1]"),
            collective("0 1 9", "g [0,1]"),
            collective("0 2 1", "h [0,2]"),
        )
        assert groups(db) == [[(0, 5), (1, 8)], [(0, 6), (2, 1)], [(0, 7), (1, 9)]]

    def test_steps_are_counted_one_by_one(self, ask) -> None:
        db = instances(
            ask, *(collective(place, "g [0,1]") for place in ("0 0 5", "1 0 9", "1 1 9"))
        )
        assert groups(db) == [[(0, 5)], [(0, 9), (1, 9)]]

    def test_a_number_on_record_comes_before_the_order(self, ask) -> None:
        db = instances(
            ask, collective("0 0 5", "g [0,1]", "6"), collective("0 1 8", "g [0,1]", "6")
        )
        assert groups(db) == [[(0, 5), (1, 8)]]
        db = instances(
            ask, collective("0 0 5", "g [0,1]", "6"), collective("0 1 8", "g [0,1]", "7")
        )
        assert groups(db) == [[(0, 5)], [(1, 8)]]

    def test_all_ranks_where_no_group_is_named(self, ask) -> None:
        db = instances(ask, collective("0 0 5"), collective("0 2 8"), ranks=3)
        assert db.rows("rank group_key") == [(0, ""), (2, "")]
        assert groups(db) == [[(0, 5), (2, 8)]]

    def test_a_group_by_its_ranks(self, ask) -> None:
        ranks = ("0 0 5", "- [0,1]"), ("0 1 6", "- [0,1]"), ("0 2 7", "- [2,3]")
        db = instances(ask, *(collective(place, group) for place, group in ranks))
        assert groups(db) == [[(0, 5), (1, 6)], [(2, 7)]]

    def test_the_group_of_all_ranks_named_and_unnamed_is_one_and_counted_anew(self, ask) -> None:
        db = instances(
            ask,
            collective("0 0 5", "- -", "0"),
            collective("0 0 6", "w [0,1,2]", "0"),
            collective("0 1 7", "w [0,1,2]", "0"),
            collective("0 1 8", "- -", "0"),
            ranks=3,
        )
        assert groups(db) == [[(0, 5), (1, 7)], [(0, 6), (1, 8)]]
        assert set(db.rows("instance")) == {("#0",), ("#1",)}

    def test_a_smaller_group_is_not_that_of_all_ranks(self, ask) -> None:
        db = instances(ask, collective("0 0 5", "- -"), collective("0 0 6", "w [0,1]"), ranks=3)
        assert db.rows("instance group_key") == [("#0", ""), ("w#0", "w")]

    def test_the_group_of_all_ranks_keeps_its_name_where_all_name_it(self, ask) -> None:
        db = instances(ask, collective("0 0 5", "w [0,1]"), ranks=2)
        assert db.rows("instance group_key") == [("w#0", "w")]


class TestTransfers:
    def test_every_column(self, ask) -> None:
        db = instances(ask, transfer("2 1 5", "isend", 3, group="g [1,3]", tag="7"))
        assert db.rows() == [(2, "1>3 g 7#0", 1, 5, 0, "g", 0, 1, 3)]

    def test_a_send_pairs_with_the_receive_of_the_same_number(self, ask) -> None:
        db = instances(
            ask,
            transfer("0 0 5", "send", 1),
            transfer("0 0 6", "isend", 1),
            transfer("0 1 2", "irecv", 0),
            transfer("0 1 9", "recv", 0),
        )
        assert groups(db) == [[(0, 5), (1, 2)], [(0, 6), (1, 9)]]

    def test_both_directions_are_counted_one_by_one(self, ask) -> None:
        db = instances(
            ask,
            transfer("0 0 5", "send", 1),
            transfer("0 0 6", "recv", 1),
            transfer("0 1 2", "recv", 0),
            transfer("0 1 9", "send", 0),
        )
        assert groups(db) == [[(0, 5), (1, 2)], [(0, 6), (1, 9)]]

    @pytest.mark.parametrize(
        "other",
        [
            transfer("0 1 2", "recv", 2),
            transfer("0 1 2", "recv", 0, tag="4"),
            transfer("0 1 2", "recv", 0, group="g [0,1]"),
            transfer("1 1 2", "recv", 0),
            transfer("0 1 2", "send", 0),
        ],
        ids=["another rank", "another tag", "another group", "another step", "another send"],
    )
    def test_not_with_a_receive_of_something_else(self, ask, other: str) -> None:
        assert groups(instances(ask, transfer("0 0 5", "send", 1), other)) == [[(0, 5)], [(1, 2)]]

    def test_no_tag_is_tag_zero(self, ask) -> None:
        db = instances(ask, transfer("0 0 5", "send", 1), transfer("0 1 2", "recv", 0, tag="0"))
        assert groups(db) == [[(0, 5), (1, 2)]]

    def test_the_group_of_all_ranks_named_and_unnamed_is_one(self, ask) -> None:
        named = transfer("0 1 2", "recv", 0, group="w [0,1]")
        db = instances(ask, transfer("0 0 5", "send", 1), named, ranks=2)
        assert groups(db) == [[(0, 5), (1, 2)]]

    def test_without_a_peer_on_record_it_pairs_with_nothing(self, ask) -> None:
        assert instances(ask, "0 0 5 0 send - - - - - true").rows() == []

    def test_a_collective_of_the_group_does_not_count(self, ask) -> None:
        db = instances(
            ask,
            collective("0 0 4"),
            transfer("0 0 5", "send", 1),
            transfer("0 1 2", "recv", 0),
        )
        assert groups(db) == [[(0, 4)], [(0, 5), (1, 2)]]

    def test_operations_of_a_batch_are_counted_one_by_one(self, ask) -> None:
        db = instances(
            ask,
            transfer("0 0 5", "isend", 1, item=0),
            transfer("0 0 5", "irecv", 1, item=1),
            transfer("0 0 5", "isend", 1, item=2),
            transfer("0 1 7", "isend", 0, item=0),
            transfer("0 1 7", "irecv", 0, item=1),
            transfer("0 1 7", "irecv", 0, item=2),
        )
        assert db.rows("instance rank item") == [
            ("0>1  0#0", 0, 0),
            ("0>1  0#0", 1, 1),
            ("0>1  0#1", 0, 2),
            ("0>1  0#1", 1, 2),
            ("1>0  0#0", 0, 1),
            ("1>0  0#0", 1, 0),
        ]

    def test_the_tenth_operation_of_a_batch_comes_after_the_second(self, ask) -> None:
        db = instances(
            ask,
            transfer("0 0 5", "isend", 1, item=2),
            transfer("0 0 5", "isend", 1, item=10),
            transfer("0 1 7", "irecv", 0, item=0),
            transfer("0 1 7", "irecv", 0, item=1),
        )
        assert db.rows("instance rank item") == [
            ("0>1  0#0", 0, 2),
            ("0>1  0#0", 1, 0),
            ("0>1  0#1", 0, 10),
            ("0>1  0#1", 1, 1),
        ]


def test_no_operation_gives_nothing(ask) -> None:
    assert ask("comm/instances").rows() == []
    assert instances(ask).rows() == []
