from __future__ import annotations

import pytest

MEMBERS = (
    "step instance rank recorded seq name api point_to_point sends async reduce_op reads fills "
    "read_bad made_bad fill_shape place bad_parts root"
)
ENTRIES = "step rank seq entry alive numel"


def member(
    rank: int,
    api: str = "all_reduce",
    *,
    read: str = "-",
    made: str = "-",
    asynchronous: str = "false",
    op: str = "SUM",
    shape: str = "[2,3]",
    parts: str = "-",
    root: str = "-",
) -> str:
    """Return one member on record: its call 5; `read`, `made`: bad, finite, or `-` for none."""
    p2p = "true" if api in ("send", "recv", "isend", "irecv") else "false"
    sends = "true" if "send" in api else "false"
    reads, fills = (str(side != "-").lower() for side in (read, made))
    bad = " ".join(str(side == "bad").lower() for side in (read, made))
    return (
        f"0 i {rank} true 5 {api}.0 {api} {p2p} {sends} {asynchronous} {op} {reads} {fills} {bad} "
        f"{shape} {rank} {parts} {root}"
    )


def missing(rank: int, *, p2p: bool = False) -> str:
    return f"0 i {rank} false - - - {str(p2p).lower()} - - - - - - - - {rank} - -"


ROLES = "rank gives may_give gets stale"


def test_every_column_of_a_collective(ask) -> None:
    db = ask("nan/handovers").table(
        "members", MEMBERS, member(0, read="bad", made="bad"), member(1, read="finite", made="bad")
    )
    assert db.rows() == [
        (0, "i", 0, True, 5, "all_reduce.0", True, False, True, False, 6),
        (0, "i", 1, True, 5, "all_reduce.0", False, False, True, False, 6),
    ]


def test_an_instance_that_nothing_bad_went_through(ask) -> None:
    finite = [member(rank, read="finite", made="finite") for rank in (0, 1)]
    assert ask("nan/handovers").table("members", MEMBERS, *finite, missing(2)).rows() == []


def test_one_came_out_though_all_brought_finite_values(ask) -> None:
    overflow = [member(rank, read="finite", made="bad") for rank in (0, 1)]
    db = ask("nan/handovers").table("members", MEMBERS, *overflow)
    assert db.rows(ROLES) == [(0, False, False, True, False), (1, False, False, True, False)]


def test_instances_are_judged_one_by_one(ask) -> None:
    bad, finite = member(0, read="bad", made="bad"), member(1, read="finite", made="finite")
    db = ask("nan/handovers").table(
        "members", MEMBERS, bad, finite.replace("0 i", "0 j", 1), finite.replace("0 i", "1 i", 1)
    )
    assert db.rows("step instance rank") == [(0, "i", 0)]


@pytest.mark.parametrize(
    ("made", "stale"), [("finite", True), ("bad", False)], ids=["before its wait", "after"]
)
def test_what_arrives_is_what_was_sent(ask, made: str, stale: bool) -> None:
    db = ask("nan/handovers").table(
        "members", MEMBERS, member(0, "isend", read="bad"), member(1, "irecv", made=made)
    )
    assert db.rows(ROLES) == [(0, True, False, False, False), (1, False, False, True, stale)]


def test_a_receive_that_is_bad_though_the_send_was_finite(ask) -> None:
    db = ask("nan/handovers").table(
        "members", MEMBERS, member(0, "send", read="finite"), member(1, "recv", made="bad")
    )
    assert db.rows(ROLES) == [(1, False, False, True, False)]


@pytest.mark.parametrize(
    ("api", "op"),
    [("all_reduce", "SUM"), ("all_reduce", "-"), ("all_gather", "-"), ("broadcast", "-")],
)
def test_a_collective_that_was_recorded_before_its_wait(ask, api: str, op: str) -> None:
    db = ask("nan/handovers").table(
        "members",
        MEMBERS,
        member(0, api, read="bad", made="finite", asynchronous="true", op=op),
        member(1, api, read="finite", made="finite", asynchronous="true", op=op),
    )
    assert db.rows(ROLES) == [(0, True, False, True, True), (1, False, False, True, True)]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(member(1, read="finite", made="finite"), id="it waited"),
        pytest.param(member(1, read="finite", made="finite", asynchronous="-"), id="not recorded"),
        pytest.param(member(1, read="finite", asynchronous="true"), id="it fills nothing"),
        pytest.param(
            member(1, read="finite", made="finite", asynchronous="true", op="MAX"), id="a maximum"
        ),
        pytest.param(
            member(1, "reduce_scatter", read="finite", made="finite", asynchronous="true"),
            id="a part of it",
        ),
    ],
)
def test_a_finite_result_is_believed_otherwise(ask, other: str) -> None:
    db = ask("nan/handovers").table("members", MEMBERS, member(0, read="bad", made="bad"), other)
    assert db.rows(ROLES) == [(0, True, False, True, False)]


class TestWithoutRecord:
    def test_may_have_brought_what_came_out(self, ask) -> None:
        db = ask("nan/handovers")
        db.table("members", MEMBERS, member(0, read="finite", made="bad"), missing(1), missing(2))
        assert db.rows() == [
            (0, "i", 0, True, 5, "all_reduce.0", False, False, True, False, 6),
            (0, "i", 1, False, None, None, False, True, False, False, None),
            (0, "i", 2, False, None, None, False, True, False, False, None),
        ]

    @pytest.mark.parametrize(
        ("parts", "suspects"),
        [(["[1]"], [1]), (["[1]", "[1,3]"], [1, 3]), (["[1]", "-"], [1, 2, 3]), (["-"], [1, 2, 3])],
    )
    def test_may_have_brought_the_part_of_a_list_that_is_bad(
        self, ask, parts: list[str], suspects: list[int]
    ) -> None:
        got = (
            member(rank, "all_gather", read="finite", made="bad", parts=part)
            for rank, part in zip((0, 4), parts, strict=False)
        )
        db = ask("nan/handovers")
        db.table("members", MEMBERS, *got, *(missing(rank) for rank in (1, 2, 3)))
        assert [rank for rank, may_give in db.rows("rank may_give") if may_give] == suspects

    def test_brought_none_when_the_bad_part_is_of_a_member_on_record(self, ask) -> None:
        got = member(0, "all_gather", read="finite", made="bad", parts="[0]")
        db = ask("nan/handovers").table("members", MEMBERS, got, missing(1))
        assert db.rows("rank may_give gets") == [(0, False, True)]

    def test_must_have_got_what_others_brought(self, ask) -> None:
        db = ask("nan/handovers")
        db.table("members", MEMBERS, member(0, read="bad", made="bad"), missing(1))
        assert db.rows(ROLES) == [(0, True, False, True, False), (1, False, False, True, False)]

    def test_must_have_got_what_was_sent_to_it(self, ask) -> None:
        db = ask("nan/handovers")
        db.table("members", MEMBERS, member(0, "send", read="bad"), missing(1, p2p=True))
        assert db.rows(ROLES) == [(0, True, False, False, False), (1, False, False, True, False)]

    def test_may_have_sent_what_was_received(self, ask) -> None:
        db = ask("nan/handovers")
        db.table("members", MEMBERS, missing(0, p2p=True), member(1, "recv", made="bad"))
        assert db.rows(ROLES) == [(0, False, True, False, False), (1, False, False, True, False)]

    @pytest.mark.parametrize("api", ["reduce", "gather"])
    @pytest.mark.parametrize(
        ("root", "made", "gets"),
        [("0", "bad", [0]), ("2", "-", [2]), ("-", "-", [2, 3])],
        ids=["on record", "without record", "not recorded"],
    )
    def test_gets_what_a_reduce_or_a_gather_gives_only_as_its_root(
        self, ask, api: str, root: str, made: str, gets: list[int]
    ) -> None:
        db = ask("nan/handovers").table(
            "members",
            MEMBERS,
            member(0, api, read="finite", made=made, root=root),
            member(1, api, read="bad", root=root),
            missing(2),
            missing(3),
        )
        assert [rank for rank, got in db.rows("rank gets") if got] == gets

    def test_gets_what_a_broadcast_gives_whoever_the_root_is(self, ask) -> None:
        db = ask("nan/handovers").table(
            "members", MEMBERS, member(0, "broadcast", read="bad", root="0"), missing(1)
        )
        assert db.rows("rank gets") == [(0, False), (1, True)]


class TestReceiveThatLooksFinite:
    """Rank 1 receives 6 elements in its call 5 from rank 0, which left no record."""

    def receive(self, ask, *entries: str, sender: str = "", shape: str = "[2,3]", api="irecv"):
        db = ask("nan/handovers")
        sender = sender or missing(0, p2p=True)
        db.table("members", MEMBERS, sender, member(1, api, made="finite", shape=shape))
        return db.table("entries", ENTRIES, *entries)

    def test_counts_as_bad_when_the_next_bad_read_has_no_other_explanation(self, ask) -> None:
        db = self.receive(ask, "0 1 9 import true 6")
        assert db.rows() == [
            (0, "i", 0, False, None, None, False, True, False, False, None),
            (0, "i", 1, True, 5, "irecv.0", False, False, True, True, 6),
        ]

    def test_does_not_count_without_a_bad_read(self, ask) -> None:
        assert self.receive(ask).rows() == []

    @pytest.mark.parametrize(
        "entries",
        [
            ["0 1 9 import true 7"],
            ["0 1 4 import true 6"],
            ["0 1 9 import false 6"],
            ["0 1 9 birth true 6"],
            ["0 2 9 import true 6"],
            ["1 1 9 import true 6"],
            ["0 1 9 import true -"],
            ["0 1 7 birth true 6", "0 1 9 import true 6"],
            ["0 1 2 import true 8", "0 1 9 import true 6"],
        ],
        ids=[
            "size",
            "earlier",
            "dies",
            "born here",
            "another rank",
            "another step",
            "size not recorded",
            "a birth before it",
            "an import before it",
        ],
    )
    def test_does_not_count_for_another_read(self, ask, entries: list[str]) -> None:
        assert self.receive(ask, *entries).rows() == []

    def test_does_not_count_when_the_sender_is_on_record(self, ask) -> None:
        sender = member(0, "isend", read="finite")
        assert self.receive(ask, "0 1 9 import true 6", sender=sender).rows() == []

    def test_a_bad_read_that_died_out_explains_nothing(self, ask) -> None:
        db = self.receive(ask, "0 1 7 birth false 6", "0 1 9 import true 6")
        assert db.rows("rank may_give gets") == [(0, True, False), (1, False, True)]

    def test_a_scalar_has_one_element(self, ask) -> None:
        db = self.receive(ask, "0 1 9 import true 1", shape="[]")
        assert db.rows("rank may_give gets numel") == [
            (0, True, False, None),
            (1, False, True, 1),
        ]


def test_no_communication_gives_nothing(ask) -> None:
    assert ask("nan/handovers").rows() == []
