from __future__ import annotations

import pytest

MEMBERS = "step instance rank recorded point_to_point name api dtype shape fill_shape"


def told(ask, *members: str):
    """Return what differs between the members of one instance, each given from its API on."""
    p2p = str("send" in members[0] or "recv" in members[0]).lower()
    rows = (f"0 i {rank} true {p2p} call.{rank} {row}" for rank, row in enumerate(members))
    return ask("health/collective_mismatch").table("members", MEMBERS, *rows).rows("what")


def test_every_column_of_a_disagreement(ask) -> None:
    db = ask("health/collective_mismatch").table(
        "members",
        MEMBERS,
        "2 i 3 true false sum.7 all_reduce float32 [2,3] [2,3]",
        "2 i 1 true false sum.4 all_reduce float16 [2,3] [2,3]",
        "2 i 2 false false - - - - -",
    )
    calls, brought = ["sum.4", "sum.7"], ["float16[2, 3]", "float32[2, 3]"]
    assert db.rows() == [(2, "i", "dtype", [1, 3], calls, brought)]


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ("all_reduce float32 [2] [2]", "broadcast float32 [2] [2]", "operation"),
        ("all_reduce float32 [2] [2]", "reduce float16 [3] -", "operation"),
        ("all_reduce float32 [2] [2]", "all_reduce float16 [3] [3]", "dtype"),
        ("all_reduce float32 [2] [2]", "all_reduce float32 [3] [3]", "shape"),
        ("all_reduce float32 [2,3] [2,3]", "all_reduce float32 [3,2] [3,2]", "shape"),
        ("reduce float32 [2] [2]", "reduce float32 [3] -", "shape"),
        ("broadcast float32 [2] [2]", "broadcast float32 - [3]", "shape"),
        ("all_gather float32 [2] [2]", "all_gather float16 [2] [2]", "dtype"),
        ("all_to_all float32 [2] [2]", "all_to_all float16 [2] [2]", "dtype"),
    ],
)
def test_the_first_thing_that_differs(ask, one: str, other: str, what: str) -> None:
    assert told(ask, one, other) == [(what,)]
    assert told(ask, one, one, other) == [(what,)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("all_reduce float32 [2] [2]", "all_reduce float32 [2] [2]"),
        ("all_gather_into_tensor float32 [2] [4]", "_all_gather_base float32 [2] [4]"),
        ("all_to_all float32 [2] [3]", "all_to_all float32 [3] [2]"),
        ("all_to_all_single float32 [2] [3]", "all_to_all_single float32 [3] [2]"),
        ("gather float32 [2] [2]", "gather float32 [2] -"),
        ("broadcast float32 [2] [2]", "broadcast float32 - [2]"),
        ("all_reduce float32 [2] [2]", "all_reduce - - -"),
        ("reduce_scatter_tensor float32 [4] [2]", "_reduce_scatter_base float32 [4] [2]"),
    ],
)
def test_members_that_agree_or_need_not(ask, one: str, other: str) -> None:
    assert told(ask, one, other) == []


@pytest.mark.parametrize(
    "api",
    "all_gather_into_tensor _all_gather_base reduce_scatter_tensor _reduce_scatter_base".split(),
)
def test_all_members_must_bring_the_same_shape_to_a_tensor_of_all(ask, api: str) -> None:
    assert told(ask, f"{api} float32 [2] [4]", f"{api} float32 [3] [4]") == [("shape",)]


class TestTransfers:
    @pytest.mark.parametrize(
        ("send", "receive"),
        [
            ("send float32 [2,3] -", "recv float32 - [2,3]"),
            ("isend float32 [2,3] -", "recv float32 - [6]"),
            ("send float32 [] -", "recv float32 - []"),
            ("send float32 [2] -", "recv - - -"),
        ],
    )
    def test_agree_in_dtype_and_size(self, ask, send: str, receive: str) -> None:
        assert told(ask, send, receive) == []

    @pytest.mark.parametrize(
        ("send", "receive", "what"),
        [
            ("send float32 [2,3] -", "recv float32 - [2,4]", "shape"),
            ("send float32 [2,3] -", "irecv float16 - [2,3]", "dtype"),
            ("send float32 [2,3] -", "irecv float16 - [2,4]", "dtype"),
            ("send float32 [] -", "recv float32 - [2]", "shape"),
        ],
    )
    def test_disagree(self, ask, send: str, receive: str, what: str) -> None:
        assert told(ask, send, receive) == [(what,)]


@pytest.mark.parametrize("recorded", ["false", "true"])
def test_a_member_alone_disagrees_with_nobody(ask, recorded: str) -> None:
    db = ask("health/collective_mismatch").table(
        "members",
        MEMBERS,
        "0 i 0 true false sum.4 all_reduce float32 [2] [2]",
        f"0 j 1 {recorded} false sum.7 all_reduce float16 [3] [3]",
        "1 i 1 true false sum.7 all_reduce float16 [3] [3]",
    )
    assert db.rows() == []


def test_nothing_on_record_gives_nothing(ask) -> None:
    assert ask("health/collective_mismatch").rows() == []
