from __future__ import annotations

import pytest

CALLS = "step rank seq kind reads_bad makes_bad absorbs"
READS = "step rank seq slot source producer_step producer_seq producer_likeness"
BAD = "step rank seq kind slot is_read allocated likeness"
TENSORS = "step rank seq slot direction role dtype numel has_nan has_posinf has_neginf"


@pytest.mark.parametrize(
    ("reader", "fate"),
    [
        ("compute true true false", "carries"),
        ("compute true false true", "absorbs"),
        ("comm true true false", "sends"),
        ("comm true false true", "sends"),
        ("comm true false false", "sends"),
        ("saved true true false", "carries"),
    ],
)
def test_fate_of_a_value_in_the_call_that_reads_it(ask, reader: str, fate: str) -> None:
    db = ask("nan/edges").table("bad_calls", CALLS, f"0 0 5 {reader}")
    db.table("bad_reads", READS, "0 0 5 input.0 made 0 3 77")
    assert db.rows() == [(0, 0, 3, 77, 0, 5, fate)]


def test_a_call_that_only_looks_gives_no_row(ask) -> None:
    db = ask("nan/edges").table("bad_calls", CALLS, "0 0 5 compute true false false")
    db.table("bad_reads", READS, "0 0 5 input.0 made 0 3 77")
    assert db.rows() == []


@pytest.mark.parametrize("source", ["allocated 0 3 77", "lost 0 3 -", "unmade - - -"])
def test_a_value_that_no_call_made_gives_no_row(ask, source: str) -> None:
    db = ask("nan/edges").table("bad_calls", CALLS, "0 0 5 compute true true false")
    db.table("bad_reads", READS, f"0 0 5 input.0 {source}")
    assert db.rows() == []


def test_ways_from_several_producers_and_from_an_earlier_step(ask) -> None:
    db = ask("nan/edges").table("bad_calls", CALLS, "1 2 9 compute true true false")
    db.table(
        "bad_reads",
        READS,
        "1 2 9 input.0 made 1 8 70",
        "1 2 9 input.1 made 0 3 71",
        "1 2 9 input.2 unmade - - -",
    )
    assert db.rows() == [(2, 0, 3, 71, 1, 9, "carries"), (2, 1, 8, 70, 1, 9, "carries")]


def test_a_value_read_twice_by_one_call_takes_one_way(ask) -> None:
    db = ask("nan/edges").table("bad_calls", CALLS, "0 0 5 compute true true false")
    db.table("bad_reads", READS, "0 0 5 input.0 made 0 3 77", "0 0 5 input.1 made 0 3 77")
    assert db.rows() == [(0, 0, 3, 77, 0, 5, "carries")]


class TestModules:
    """Call 4 lies inside of call 5."""

    def inside(self, ask, *outside: str, kind: str = "module", parent: str = "5"):
        db = ask("nan/edges").table(
            "calls",
            "step rank seq kind parent_seq",
            f"0 0 4 {kind} {parent}",
            "0 0 5 module -",
        )
        db.table("bad_tensors", BAD, f"0 0 4 {kind} output.0 false false 77", *outside)
        calls = ["0 0 4 module false true false"]
        if outside:
            calls.append("0 0 5 module false true false")
        return db.table("bad_calls", CALLS, *calls)

    def test_what_a_child_made_is_carried_by_a_module_with_a_bad_result(self, ask) -> None:
        db = self.inside(ask, "0 0 5 module output.0 false false 78")
        assert db.rows() == [(0, 0, 4, 77, 0, 5, "carries")]

    def test_what_a_child_made_is_absorbed_by_a_module_with_finite_results(self, ask) -> None:
        db = self.inside(ask).table(
            "tensors",
            TENSORS,
            "0 0 5 output.0 output value float32 4 false false false",
            "0 0 5 output.1 output value float32 4 false - -",
            "0 0 5 output.2 output value int64 4 - - -",
        )
        assert db.rows() == [(0, 0, 4, 77, 0, 5, "absorbs")]

    @pytest.mark.parametrize(
        "result",
        [
            pytest.param("0 0 5 output.0 output value float32 4 - - -", id="not recorded"),
            pytest.param("0 0 5 output.0 output value int64 4 false false false", id="integers"),
            pytest.param("0 0 5 output.0 output value float32 0 false false false", id="empty"),
            pytest.param("0 0 5 input.0 input value float32 4 false false false", id="no result"),
            pytest.param("0 1 5 output.0 output value float32 4 false - -", id="another rank"),
        ],
    )
    def test_a_module_whose_results_tell_nothing_gives_no_row(self, ask, result: str) -> None:
        assert self.inside(ask).table("tensors", TENSORS, result).rows() == []

    def test_a_module_with_one_result_that_is_not_recorded_absorbs_nothing(self, ask) -> None:
        db = self.inside(ask).table(
            "tensors",
            TENSORS,
            "0 0 5 output.0 output value float32 4 false false false",
            "0 0 5 output.1 output value float32 4 - - -",
        )
        assert db.rows() == []

    def test_a_call_that_is_no_module_or_lies_in_none(self, ask) -> None:
        outside = "0 0 5 module output.0 false false 78"
        assert self.inside(ask, outside, kind="compute").rows() == []
        assert self.inside(ask, outside, parent="-").rows() == []


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/edges").rows() == []
