from __future__ import annotations

import pytest

ENTRIES = "step rank seq entry alive"
WAYS = "rank producer_step producer_seq step seq"
EDGES = "rank producer_step producer_seq step seq fate"
CALLS = "step rank seq kind reads_bad"
LINEAGE = "step rank seq value_id"


def test_an_entry_that_does_not_live_on_its_own_rank(ask) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, "0 0 3 birth false")
    db.table("ways", WAYS, "0 0 3 0 4").table(
        "edges", EDGES, "0 0 3 0 4 carries", "0 0 4 0 5 sends", "0 0 4 0 6 absorbs"
    )
    assert db.rows() == [(0, 0, 5, 0, 3, False)]


def test_every_communication_call_it_leaves_by(ask) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, "0 0 3 birth false", "0 0 4 birth false")
    db.table("ways", WAYS, "0 0 3 0 5", "0 0 4 0 5")
    db.table("edges", EDGES, "0 0 5 0 6 sends", "0 0 3 0 7 sends")
    assert db.rows("seq entry_seq") == [(6, 3), (6, 4), (7, 3)]


@pytest.mark.parametrize(
    "edge", ["0 0 9 0 5 sends", "1 0 3 1 5 sends", "0 1 3 1 5 sends", "0 0 3 0 5 carries"]
)
def test_no_exit_of_another_value(ask, edge: str) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, "0 0 3 birth false")
    assert db.table("edges", EDGES, edge).rows() == []


@pytest.mark.parametrize(
    ("lineage", "rows"),
    [
        ([], []),
        (["0 0 3 -"], []),
        (["0 1 3 8"], []),
        (["1 0 3 8"], []),
        (["0 0 3 8"], [(0, 0, 5, 0, 3, False)]),
        (["0 0 9 8"], [(0, 0, 5, 0, 3, False)]),
    ],
)
def test_an_entry_that_lives_only_where_lineage_is_on_record(
    ask, lineage: list[str], rows: list
) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, "0 0 3 birth true")
    db.table("edges", EDGES, "0 0 3 0 5 sends").table("bad_tensors", LINEAGE, *lineage)
    assert db.rows() == rows


class TestSavedForBackward:
    """Call 3 of forward holds one that lives; call 5, its backward, reads a finite gradient."""

    def exits(self, ask, entry: str, *, forward: str = "3"):
        db = ask("nan/exits").table("bad_tensors", LINEAGE, "0 0 3 8")
        columns = f"{ENTRIES} forward_seq"
        db.table("entries", columns, "0 0 3 birth true -", f"0 0 5 {entry} true {forward}")
        return db.table("edges", EDGES, "0 0 5 0 6 sends")

    @pytest.mark.parametrize("entry", ["birth", "turned"])
    def test_it_leaves_by_what_the_backward_call_made(self, ask, entry: str) -> None:
        assert self.exits(ask, entry).rows("seq entry_seq") == [(6, 3), (6, 5)]

    @pytest.mark.parametrize("entry", ["import", "lost", "carried"])
    def test_not_by_what_the_backward_call_read(self, ask, entry: str) -> None:
        assert self.exits(ask, entry).rows("seq entry_seq") == [(6, 5)]

    def test_not_by_the_backward_of_another_call(self, ask) -> None:
        assert self.exits(ask, "birth", forward="-").rows("seq entry_seq") == [(6, 5)]
        assert self.exits(ask, "birth", forward="2").rows("seq entry_seq") == [(6, 5)]


def test_what_was_received_and_does_not_live_is_named_by_its_call(ask) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, "0 0 3 received false")
    assert db.table("edges", EDGES, "0 0 3 0 5 sends").rows() == [(0, 0, 5, 0, 3, True)]


def test_what_was_received_and_lives_stands_for_any_receive(ask) -> None:
    db = ask("nan/exits")
    db.table("entries", ENTRIES, "0 0 3 received true", "0 0 4 received true")
    db.table("edges", EDGES, "0 0 3 0 5 sends", "0 0 4 0 5 sends")
    assert db.table("bad_tensors", LINEAGE, "0 0 3 8").rows() == [(0, 0, 5, 0, None, True)]


def test_an_exit_in_a_later_step(ask) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, "0 0 3 birth false")
    db.table("ways", WAYS, "0 0 3 1 4").table("edges", EDGES, "0 0 4 1 5 sends", "0 1 4 1 6 sends")
    assert db.rows() == [(1, 0, 6, 0, 3, False)]


def test_what_the_communication_call_itself_read(ask) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, "0 0 3 import false", "0 0 3 received false")
    db.table("bad_calls", CALLS, "0 0 3 comm true")
    assert db.rows() == [(0, 0, 3, 0, 3, False)]


@pytest.mark.parametrize(
    ("entry", "call"),
    [("received", "comm true"), ("received", "comm false"), ("import", "compute true")],
)
def test_what_a_call_received_does_not_leave_by_it(ask, entry: str, call: str) -> None:
    db = ask("nan/exits").table("entries", ENTRIES, f"0 0 3 {entry} false")
    assert db.table("bad_calls", CALLS, f"0 0 3 {call}").rows() == []


def test_no_entry_gives_nothing(ask) -> None:
    assert ask("nan/exits").table("edges", EDGES, "0 0 3 0 5 sends").rows() == []
