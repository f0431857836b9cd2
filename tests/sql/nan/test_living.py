from __future__ import annotations

import pytest

ENTRIES = "step rank seq entry alive numel"
EXITS = "step rank seq entry_step entry_seq received"
HANDOVERS = "step instance rank recorded seq gives gets stale numel"


def test_an_entry_that_leads_to_a_loose_end_on_its_own_rank(ask) -> None:
    db = ask("nan/living")
    db.table("entries", ENTRIES, "0 0 3 birth true 4", "0 0 4 birth false 4", "1 2 5 import true 4")
    assert db.rows() == [(0, 0, 3, "birth"), (1, 2, 5, "import")]


def test_every_entry_of_a_call_that_lives(ask) -> None:
    db = ask("nan/living")
    db.table("entries", ENTRIES, "0 0 3 import true 4", "0 0 3 received true 4")
    assert db.rows("entry") == [("import",), ("received",)]


def handed_over(ask, *entries: str, exit_: str = "0 0 5 0 3 false", gives: str = "true"):
    """Return the question where rank 0 hands on by its call 5 what it entered with at call 3."""
    db = ask("nan/living").table("entries", ENTRIES, "0 0 3 birth false 4", *entries)
    db.table("exits", EXITS, exit_)
    return db.table(
        "handovers",
        HANDOVERS,
        f"0 i 0 true 5 {gives} false false 4",
        "0 i 1 true 7 false true false 4",
    )


def test_what_it_handed_over_lives_on_another_rank(ask) -> None:
    db = handed_over(ask, "0 1 7 received true 4")
    assert db.rows() == [(0, 0, 3, "birth"), (0, 1, 7, "received")]


def test_what_it_handed_over_dies_there_too(ask) -> None:
    assert handed_over(ask, "0 1 7 received false 4").rows() == []


@pytest.mark.parametrize(
    "how",
    [
        {"exit_": "0 0 6 0 3 false"},
        {"exit_": "0 2 5 0 3 false"},
        {"exit_": "1 0 5 0 3 false"},
        {"gives": "false"},
    ],
    ids=["another call", "another rank", "another step", "it brought none"],
)
def test_what_lives_elsewhere_came_from_another_entry(ask, how: dict[str, str]) -> None:
    db = handed_over(ask, "0 1 7 received true 4", **how)
    assert db.rows() == [(0, 1, 7, "received")]


def test_another_entry_of_its_rank_left_by_that_call(ask) -> None:
    others = ("0 0 4 birth false 4", "0 1 7 received true 4")
    db = handed_over(ask, *others, exit_="0 0 5 0 4 false")
    assert db.rows() == [(0, 0, 4, "birth"), (0, 1, 7, "received")]


def test_an_entry_at_the_call_of_a_member_that_got_nothing(ask) -> None:
    db = ask("nan/living").table("entries", ENTRIES, "0 0 3 birth false 4", "0 1 7 import true 4")
    db.table("exits", EXITS, "0 0 5 0 3 false").table(
        "handovers",
        HANDOVERS,
        "0 i 0 true 5 true false false 4",
        "0 i 1 true 7 true false false 4",
    )
    assert db.rows() == [(0, 1, 7, "import")]


def test_what_comes_back_and_lives_on_its_own_rank(ask) -> None:
    db = ask("nan/living").table("entries", ENTRIES, "0 0 3 birth false 4", "0 0 5 received true 4")
    db.table("exits", EXITS, "0 0 5 0 3 false")
    db.table("handovers", HANDOVERS, "0 i 0 true 5 true true false 4")
    assert db.rows("seq entry") == [(3, "birth"), (5, "received")]


def test_from_rank_to_rank_to_rank(ask) -> None:
    db = ask("nan/living").table(
        "entries",
        ENTRIES,
        "0 0 3 birth false 4",
        "0 1 7 received false 4",
        "0 2 4 received true 4",
    )
    db.table("exits", EXITS, "0 0 5 0 3 false", "0 1 9 0 7 true").table(
        "handovers",
        HANDOVERS,
        "0 i 0 true 5 true false false 4",
        "0 i 1 true 7 false true false 4",
        "0 j 1 true 9 true false false 4",
        "0 j 2 true 4 false true false 4",
    )
    assert db.rows("rank seq") == [(0, 3), (1, 7), (2, 4)]


def test_it_left_in_a_later_step_than_it_came_in(ask) -> None:
    db = ask("nan/living")
    db.table("entries", ENTRIES, "0 0 3 birth false 4", "1 1 7 received true 4")
    db.table("exits", EXITS, "1 0 5 0 3 false").table(
        "handovers", HANDOVERS, "1 i 0 true 5 true false false 4", "1 i 1 true 7 false true false 4"
    )
    assert db.rows() == [(0, 0, 3, "birth"), (1, 1, 7, "received")]


@pytest.mark.parametrize(("recorded", "rows"), [("false -", [(0, 0, 3, "birth")]), ("true 7", [])])
def test_it_went_to_a_rank_that_left_no_record(ask, recorded: str, rows: list) -> None:
    db = ask("nan/living").table("entries", ENTRIES, "0 0 3 birth false 4")
    db.table("exits", EXITS, "0 0 5 0 3 false").table(
        "handovers",
        HANDOVERS,
        "0 i 0 true 5 true false false 4",
        f"0 i 1 {recorded} false true false 4",
    )
    assert db.rows() == rows


def test_an_exit_of_anything_received_names_no_entry(ask) -> None:
    db = ask("nan/living").table("entries", ENTRIES, "0 0 3 received false 4")
    db.table("exits", EXITS, "0 0 5 0 - true").table(
        "handovers",
        HANDOVERS,
        "0 i 0 true 5 true false false 4",
        "0 i 1 false - false true false -",
    )
    assert db.rows() == []


class TestReceiveRecordedTooEarly:
    """Rank 1 received 6 elements in its call 5, and the record of it holds finite ones."""

    def receive(self, ask, entry: str, stale: str = "true", numel: str = "6"):
        db = ask("nan/living").table("entries", ENTRIES, *([entry] if entry else []))
        return db.table("handovers", HANDOVERS, f"0 i 1 true 5 false true {stale} {numel}")

    def test_lives_when_a_read_of_its_size_does(self, ask) -> None:
        assert self.receive(ask, "0 1 9 import true 6").rows() == [
            (0, 1, 5, "received"),
            (0, 1, 9, "import"),
        ]

    @pytest.mark.parametrize(
        "entry",
        [
            "0 1 9 import true 7",
            "0 1 9 import true -",
            "0 1 4 import true 6",
            "0 2 9 import true 6",
            "1 1 9 import true 6",
            "0 1 9 birth true 6",
            "0 1 9 import false 6",
            "",
        ],
    )
    def test_not_for_another_read(self, ask, entry: str) -> None:
        assert (0, 1, 5, "received") not in self.receive(ask, entry).rows()

    def test_not_when_its_record_was_made_in_time(self, ask) -> None:
        db = self.receive(ask, "0 1 9 import true 6", stale="false")
        assert db.rows("seq") == [(9,)]

    def test_not_when_its_size_is_not_recorded(self, ask) -> None:
        assert self.receive(ask, "0 1 9 import true 6", numel="-").rows("seq") == [(9,)]

    def test_the_sender_lives_with_it(self, ask) -> None:
        db = ask("nan/living")
        db.table("entries", ENTRIES, "0 0 3 birth false 6", "0 1 9 import true 6")
        db.table("exits", EXITS, "0 0 4 0 3 false").table(
            "handovers",
            HANDOVERS,
            "0 i 0 true 4 true false false -",
            "0 i 1 true 5 false true true 6",
        )
        assert db.rows("rank seq") == [(0, 3), (1, 5), (1, 9)]


def test_no_entry_gives_nothing(ask) -> None:
    assert ask("nan/living").rows() == []
