from __future__ import annotations

import pytest

BAD = "step rank seq slot is_read allocated likeness"
KNOWN = BAD + " value_id producer_seq producer_slot"
WRITTEN = "step rank seq slot has_nan"


def test_by_statistics_the_latest_earlier_result_that_is_alike(ask) -> None:
    db = ask("nan/bad_reads").table(
        "bad_tensors",
        BAD,
        "0 0 1 output.0 false false 77",
        "0 0 3 output.0 false false 77",
        "0 0 4 output.0 false false 78",
        "0 0 5 input.0 true false 77",
        "0 0 6 output.0 false false 77",
    )
    assert db.rows() == [(0, 0, 5, "input.0", "made", 0, 3, 77)]


def test_by_statistics_memory_that_had_only_been_reserved(ask) -> None:
    db = ask("nan/bad_reads").table(
        "bad_tensors", BAD, "0 0 3 output.0 false true 77", "0 0 5 input.0 true false 77"
    )
    assert db.rows("source producer_seq") == [("allocated", 3)]


@pytest.mark.parametrize(
    "result",
    [
        "0 0 3 output.0 false false 78",
        "0 0 5 output.0 false false 77",
        "0 0 6 output.0 false false 77",
        "0 0 3 input.0 true false 77",
    ],
)
def test_by_statistics_unmade_when_no_earlier_result_is_alike(ask, result: str) -> None:
    db = ask("nan/bad_reads").table("bad_tensors", BAD, "0 0 5 input.9 true false 77", result)
    assert (0, 0, 5, "input.9", "unmade", None, None, None) in db.rows()


def test_each_read_of_a_call_has_its_own_row(ask) -> None:
    db = ask("nan/bad_reads").table(
        "bad_tensors",
        BAD,
        "0 0 3 output.0 false false 77",
        "0 0 5 input.0 true false 77",
        "0 0 5 input.1 true false 77",
        "0 0 5 input.2 true false 79",
    )
    assert db.rows("slot source producer_seq") == [
        ("input.0", "made", 3),
        ("input.1", "made", 3),
        ("input.2", "unmade", None),
    ]


def test_by_lineage_the_producer_on_record_not_what_is_alike(ask) -> None:
    db = ask("nan/bad_reads")
    db.table("calls", "step rank seq", "0 0 2", "0 0 3", "0 0 5")
    db.table(
        "bad_tensors",
        KNOWN,
        "0 0 2 output.1 false false 70 8 - -",
        "0 0 3 output.0 false false 77 9 - -",
        "0 0 5 input.0 true false 77 8 2 output.1",
    )
    assert db.rows() == [(0, 0, 5, "input.0", "made", 0, 2, 70)]


def test_by_lineage_a_producer_in_an_earlier_step(ask) -> None:
    db = ask("nan/bad_reads").table("calls", "step rank seq", "0 0 2", "1 0 5", "0 1 2")
    db.table(
        "bad_tensors",
        KNOWN,
        "0 0 2 output.0 false false 70 8 - -",
        "1 0 5 input.0 true false 70 8 2 output.0",
    )
    assert db.rows("step source producer_step producer_seq") == [(1, "made", 0, 2)]


@pytest.mark.parametrize(
    ("producer", "source"),
    [
        pytest.param("0 0 2 output.0 false false 70 8 - -", "made", id="held it"),
        pytest.param("0 0 2 output.0 false true 70 8 - -", "allocated", id="reserved it"),
        pytest.param("0 0 2 output.1 false false 70 7 - -", "lost", id="another result"),
        pytest.param("0 1 2 output.0 false false 70 8 - -", "lost", id="another rank"),
        pytest.param("0 0 2 input.0 true false 70 7 - -", "lost", id="it only read"),
    ],
)
def test_by_lineage_what_the_producer_wrote(ask, producer: str, source: str) -> None:
    db = ask("nan/bad_reads").table("calls", "step rank seq", "0 0 2", "0 0 5", "0 1 2")
    db.table("bad_tensors", KNOWN, producer, "0 0 5 input.9 true false 70 8 2 output.0")
    db.table("tensors", WRITTEN, f"0 0 2 output.0 {str(source != 'lost').lower()}")
    assert (5, "input.9", source, 2) in db.rows("seq slot source producer_seq")


@pytest.mark.parametrize(
    "written",
    [
        "0 0 2 output.0 -",
        "0 0 2 output.0 true",
        "0 0 2 output.1 false",
        "0 1 2 output.0 false",
        "1 0 2 output.0 false",
        "0 0 3 output.0 false",
    ],
    ids=[
        "nothing known",
        "no value",
        "another result",
        "another rank",
        "another step",
        "another call",
    ],
)
def test_by_lineage_unmade_when_it_is_not_known_what_the_producer_wrote(ask, written: str) -> None:
    db = ask("nan/bad_reads").table("calls", "step rank seq", "0 0 2", "0 0 5")
    db.table("bad_tensors", KNOWN, "0 0 5 input.0 true false 70 8 2 output.0")
    db.table("tensors", WRITTEN, written)
    assert db.rows() == [(0, 0, 5, "input.0", "unmade", 0, 2, None)]


@pytest.mark.parametrize(
    "lineage", ["8 - -", "8 2 output.0"], ids=["no producer", "its producer is not on record"]
)
def test_by_lineage_unmade(ask, lineage: str) -> None:
    db = ask("nan/bad_reads").table("calls", "step rank seq", "0 0 5", "0 1 2", "1 0 2")
    db.table(
        "bad_tensors",
        KNOWN,
        "0 0 3 output.0 false false 70 - - -",
        f"0 0 5 input.0 true false 70 {lineage}",
    )
    assert db.rows() == [(0, 0, 5, "input.0", "unmade", None, None, None)]


def test_nothing_read_gives_nothing(ask) -> None:
    db = ask("nan/bad_reads").table("bad_tensors", BAD, "0 0 3 output.0 false false 77")
    assert db.rows() == []


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/bad_reads").rows() == []
