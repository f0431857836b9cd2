from __future__ import annotations

import pytest

STARTS = "origin step rank seq name received"
HANDOVERS = "step instance rank recorded seq name gives may_give gets"
LIVING = "step rank seq entry"
EXITS = "step rank seq entry_step entry_seq received"
LOG = "0 0 0 3 log.0 false"
"""Origin 0: call 3 of rank 0."""
GIVES = "true false false"
GETS = "false false true"


def hops(*names: str) -> list[dict]:
    """Return a path out of `rank call` for each hop."""
    pairs = (name.split() for name in names)
    return [{"rank": int(rank), "call": call} for rank, call in pairs]


def spread(ask, *handovers: str, starts: tuple[str, ...] = (LOG,), lineage: str = "false"):
    """Return the question where every value that a rank on record gets lives there."""
    db = ask("nan/known_spread").table("known_starts", STARTS, *starts)
    db.table("handovers", HANDOVERS, *handovers)
    got = (row.split() for row in handovers if row.endswith("true"))
    living = {f"{row[0]} {row[2]} {row[4]} received" for row in got if row[3] == "true"}
    db.table("living", LIVING, *living)
    return db.table("shards", "step rank lineage", *(f"0 {rank} {lineage}" for rank in range(4)))


ZERO_TO_ONE = (f"0 i 0 true 5 send.0 {GIVES}", f"0 i 1 true 7 recv.4 {GETS}")
ONE_TO_TWO = (f"0 j 1 true 9 send.1 {GIVES}", f"0 j 2 true 2 recv.0 {GETS}")


def test_an_origin_is_on_its_own_rank(ask) -> None:
    assert spread(ask).rows() == [(0, 0, 0, 3, 0, hops("0 log.0"))]


def test_from_rank_to_rank_each_call_named_on_both_sides(ask) -> None:
    to_one = hops("0 log.0", "0 send.0", "1 recv.4")
    assert spread(ask, *ZERO_TO_ONE, *ONE_TO_TWO).rows() == [
        (0, 0, 0, 3, 0, hops("0 log.0")),
        (0, 0, 1, 8, 1, to_one),
        (0, 0, 2, 3, 2, to_one + hops("1 send.1", "2 recv.0")),
    ]


def test_every_member_of_a_collective(ask) -> None:
    gives_and_gets = "true false true"
    db = spread(
        ask,
        f"0 i 0 true 5 sum.0 {gives_and_gets}",
        f"0 i 1 true 7 sum.4 {GETS}",
        f"0 i 2 true 6 sum.2 {GETS}",
    )
    assert db.rows("rank ready hops") == [(0, 3, 0), (1, 8, 1), (2, 7, 1)]


@pytest.mark.parametrize("seq", [3, 4])
def test_what_a_rank_brings_from_the_call_of_its_origin_on(ask, seq: int) -> None:
    db = spread(ask, f"0 i 0 true {seq} send.0 {GIVES}", ZERO_TO_ONE[1])
    assert db.rows("rank") == [(0,), (1,)]


def test_not_what_a_rank_brought_before(ask) -> None:
    db = spread(ask, f"0 i 0 true 2 send.0 {GIVES}", ZERO_TO_ONE[1])
    assert db.rows("rank") == [(0,)]


@pytest.mark.parametrize(("seq", "ranks"), [(6, [0, 1]), (7, [0, 1]), (8, [0, 1, 2])])
def test_what_a_rank_brings_after_the_call_it_got_it_by(ask, seq: int, ranks: list[int]) -> None:
    db = spread(ask, *ZERO_TO_ONE, f"0 j 1 true {seq} send.1 {GIVES}", ONE_TO_TWO[1])
    assert [rank for (rank,) in db.rows("rank")] == ranks


@pytest.mark.parametrize(
    "other",
    [
        f"0 j 1 true 7 recv.4 {GETS}",
        f"1 i 1 true 7 recv.4 {GETS}",
        f"0 i 1 true 7 recv.4 {GIVES}",
    ],
    ids=["another instance", "another step", "it gets nothing"],
)
def test_not_to_a_rank_that_got_nothing_of_it(ask, other: str) -> None:
    assert spread(ask, ZERO_TO_ONE[0], other).rows("rank") == [(0,)]


def test_not_to_a_rank_where_what_it_got_died_out(ask) -> None:
    db = ask("nan/known_spread").table("known_starts", STARTS, LOG)
    db.table("handovers", HANDOVERS, *ZERO_TO_ONE)
    db.table("living", LIVING, "0 1 7 import", "0 1 8 received", "0 0 7 received")
    assert db.rows("rank") == [(0,)]


def test_an_origin_in_the_communication_call_itself_is_named_once(ask) -> None:
    db = spread(ask, *ZERO_TO_ONE, starts=("0 0 0 5 send.0 false",))
    assert db.rows("rank path") == [(0, hops("0 send.0")), (1, hops("0 send.0", "1 recv.4"))]


def test_an_origin_that_was_received_is_handed_on_after_its_call(ask) -> None:
    starts = ("0 0 0 5 sum.0 true", "0 0 1 7 sum.4 true")
    assert spread(ask, starts=starts).rows() == [
        (0, 0, 0, 6, 0, hops("0 sum.0")),
        (0, 0, 1, 8, 0, hops("1 sum.4")),
    ]
    db = spread(ask, *ZERO_TO_ONE, starts=starts[:1])
    assert db.rows("rank") == [(0,)]


def test_origins_spread_one_by_one(ask) -> None:
    starts = (LOG, "1 0 1 1 log.9 false")
    db = spread(ask, *ZERO_TO_ONE, *ONE_TO_TWO, starts=starts)
    assert db.rows("origin rank hops") == [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 1, 0), (1, 2, 1)]


def test_what_comes_back_changes_nothing(ask) -> None:
    db = spread(ask, *ZERO_TO_ONE, f"0 k 1 true 9 send.1 {GIVES}", f"0 k 0 true 8 recv.0 {GETS}")
    assert db.rows("rank ready hops") == [(0, 3, 0), (1, 8, 1)]


def test_the_shortest_way_into_a_call(ask) -> None:
    db = spread(
        ask,
        *ZERO_TO_ONE,
        f"0 j 0 true 9 sum.0 {GIVES}",
        f"0 j 1 true 9 sum.0 {GIVES}",
        f"0 j 2 true 9 sum.0 {GETS}",
    )
    assert db.rows("rank path")[-1] == (2, hops("0 log.0", "0 sum.0", "2 sum.0"))


def test_the_first_arrival_though_it_took_more_hops(ask) -> None:
    db = spread(
        ask,
        *ZERO_TO_ONE,
        *ONE_TO_TWO,
        f"0 k 0 true 9 send.3 {GIVES}",
        f"0 k 2 true 20 recv.8 {GETS}",
        f"0 l 2 true 11 send.2 {GIVES}",
        f"0 l 3 true 4 recv.0 {GETS}",
    )
    assert db.rows("rank ready hops") == [(0, 3, 0), (1, 8, 1), (2, 3, 2), (3, 5, 3)]


class TestLineage:
    @pytest.mark.parametrize(
        ("exits", "ranks"),
        [
            (["0 0 5 0 3 false"], [0, 1]),
            (["0 0 5 0 2 false", "0 0 5 0 3 false"], [0, 1]),
            (["0 0 5 0 2 false"], [0]),
            (["0 0 6 0 3 false"], [0]),
            (["0 1 5 0 3 false"], [0]),
            (["0 0 5 0 - true"], [0]),
            ([], [0]),
        ],
    )
    def test_a_rank_hands_on_only_what_came_from_the_origin(
        self, ask, exits: list[str], ranks: list[int]
    ) -> None:
        db = spread(ask, *ZERO_TO_ONE, lineage="true").table("exits", EXITS, *exits)
        assert [rank for (rank,) in db.rows("rank")] == ranks

    @pytest.mark.parametrize(
        ("exits", "ranks"),
        [
            (["0 1 9 0 - true"], [0, 1, 2]),
            (["0 1 9 0 7 true"], [0, 1, 2]),
            (["0 1 9 0 2 false"], [0, 1]),
            ([], [0, 1]),
        ],
    )
    def test_a_rank_hands_on_what_it_got_only_if_that_left_again(
        self, ask, exits: list[str], ranks: list[int]
    ) -> None:
        db = spread(ask, *ZERO_TO_ONE, *ONE_TO_TWO, lineage="true")
        db.table("exits", EXITS, "0 0 5 0 3 false", *exits)
        assert [rank for (rank,) in db.rows("rank")] == ranks


class TestWithoutRecord:
    """Rank 1 left no record of what it got and gave."""

    def test_a_rank_hands_on_what_it_was_handed(self, ask) -> None:
        db = spread(
            ask,
            ZERO_TO_ONE[0],
            "0 i 1 false - - false false true",
            "0 j 1 false - - false true false",
            ONE_TO_TWO[1],
        )
        assert db.rows("rank ready hops") == [(0, 3, 0), (1, -1, 1), (2, 3, 2)]
        assert [hop["rank"] for hop in db.rows("path")[-1][0]] == [0, 0, 1, 2]

    def test_a_rank_that_was_handed_nothing_hands_nothing_on(self, ask) -> None:
        db = spread(ask, "0 j 1 false - - false true false", ONE_TO_TWO[1])
        assert db.rows("rank") == [(0,)]

    def test_it_hands_on_where_the_others_have_lineage(self, ask) -> None:
        db = spread(
            ask,
            ZERO_TO_ONE[0],
            "0 i 1 false - - false false true",
            "0 j 1 false - - false true false",
            ONE_TO_TWO[1],
            lineage="true",
        )
        assert db.table("exits", EXITS, "0 0 5 0 3 false").rows("rank") == [(0,), (1,), (2,)]


def test_no_origin_gives_nothing(ask) -> None:
    assert spread(ask, *ZERO_TO_ONE, starts=()).rows() == []
    assert ask("nan/known_spread").rows() == []
