from __future__ import annotations

import pytest

MINUS_INF = '{"input.1":{"type":"float","value":"-inf"}}'
INFINITE = '{"input.1":{"type":"float","value":"inf"}}'
CALLS = "step rank seq kind phase args"
UNREAD = "step rank seq slot requires_grad nan posinf neginf high low numel"
BAD_CALLS = "step rank seq kind reads_bad makes_bad"
READS = "step rank seq slot source producer_step producer_seq"
EDGES = "rank producer_step producer_seq producer_likeness step seq fate"
TENSORS = "step rank seq slot direction role numel max min has_nan has_posinf has_neginf"

INF_ABOVE = "false false true false inf -2 4"
"""A result of 4 elements: the finite ones end at -2 below, at least one is +inf above."""
INF_BELOW = "false false false true 3 -inf 4"
NAN = "false true false false 3 -2 4"


def births(ask, *results: str, args: str = "-", kind: str = "compute", phase: str = "forward"):
    """Return the question for call 3, which reads nothing bad: its results that nobody reads."""
    db = ask("nan/loose_ends")
    db.table("calls", CALLS, f"0 0 3 {kind} {phase} {args}", "0 0 9 compute forward -")
    db.table("bad_calls", BAD_CALLS, f"0 0 3 {kind} false true")
    return db.table("unread", UNREAD, *(f"0 0 3 {result}" for result in results))


def test_a_bad_result_that_nobody_reads(ask) -> None:
    assert births(ask, f"output.0 {NAN}").rows() == [(0, 0, 3)]


def test_not_a_call_whose_results_are_all_read(ask) -> None:
    assert births(ask).rows() == []


def test_a_result_of_which_another_is_read(ask) -> None:
    db = births(ask, f"output.0 {NAN}").table("edges", EDGES, "0 0 3 78 0 5 carries")
    assert db.rows() == [(0, 0, 3)]


def test_two_results_give_one_row(ask) -> None:
    assert births(ask, f"output.0 {NAN}", f"output.1 {INF_ABOVE}").rows() == [(0, 0, 3)]


class TestAskedFor:
    @pytest.mark.parametrize("result", [INF_BELOW, INF_ABOVE])
    def test_an_infinity_passed_as_an_argument(self, ask, result: str) -> None:
        args = MINUS_INF if result == INF_BELOW else INFINITE
        assert births(ask, f"output.0 {result}", args=args).rows() == []

    def test_nan_passed_as_an_argument(self, ask) -> None:
        args = '{"input.1":{"type":"float","value":"nan"}}'
        assert births(ask, f"output.0 {NAN}", args=args).rows() == []

    @pytest.mark.parametrize("args", ["-", '{"input.1":{"type":"float","value":-3.4e+38}}'])
    def test_not_an_infinity_that_the_arguments_do_not_name(self, ask, args: str) -> None:
        assert births(ask, f"output.0 {INF_BELOW}", args=args).rows() == [(0, 0, 3)]

    def test_not_when_the_call_read_a_bad_value_too(self, ask) -> None:
        db = ask("nan/loose_ends")
        db.table("calls", CALLS, f"0 0 3 compute forward {MINUS_INF}")
        db.table("bad_calls", BAD_CALLS, "0 0 3 compute true true")
        db.table("unread", UNREAD, f"0 0 3 output.0 {INF_BELOW}")
        assert db.rows() == [(0, 0, 3)]

    def test_nan_out_of_an_infinite_argument_that_nobody_reads(self, ask) -> None:
        assert births(ask, f"output.0 {NAN}", args=INFINITE).rows() == []

    def mask(self, ask, limits: str, manner: str):
        db = ask("nan/loose_ends").table("calls", CALLS, "0 0 3 compute forward -")
        db.table("bad_calls", BAD_CALLS, "0 0 3 compute true true")
        db.table("unread", UNREAD, f"0 0 3 output.0 false false {limits} 4")
        return db.table("on_purpose", "step rank seq manner", f"0 0 3 {manner}")

    @pytest.mark.parametrize("limits", ["false true 0 -inf", "true false inf 0"])
    def test_a_mask_made_of_one_is_partly_finite(self, ask, limits: str) -> None:
        assert self.mask(ask, limits, "kept").rows() == []

    @pytest.mark.parametrize("limits", ["false true -inf -inf", "true false inf inf"])
    def test_not_a_mask_without_a_finite_value(self, ask, limits: str) -> None:
        assert self.mask(ask, limits, "kept").rows() == [(0, 0, 3)]

    def test_not_what_became_something_else(self, ask) -> None:
        assert self.mask(ask, "true false inf 0", "turned").rows() == [(0, 0, 3)]


class TestClamped:
    """Call 3 makes an infinity that nobody reads; what comes later tells that it was cut off."""

    @pytest.mark.parametrize(
        ("result", "later"),
        [
            (INF_ABOVE, "input.0 input value 4 5 -2 false false false"),
            (INF_BELOW, "input.0 input value 4 3 -9 false false false"),
        ],
    )
    def test_a_finite_tensor_with_the_same_finite_side(self, ask, result: str, later: str) -> None:
        db = births(ask, f"output.0 {result}").table("tensors", TENSORS, f"0 0 5 {later}")
        assert db.rows() == []

    @pytest.mark.parametrize(
        "later",
        [
            pytest.param("0 0 5 input.0 input value 4 5 -3 false false false", id="other end"),
            pytest.param("0 0 5 input.0 input value 5 5 -2 false false false", id="other size"),
            pytest.param("0 0 2 input.0 input value 4 5 -2 false false false", id="earlier"),
            pytest.param("0 0 3 input.0 input value 4 5 -2 false false false", id="its own"),
            pytest.param("0 1 5 input.0 input value 4 5 -2 false false false", id="another rank"),
            pytest.param("1 0 5 input.0 input value 4 5 -2 false false false", id="another step"),
            pytest.param("0 0 5 output.0 output value 4 5 -2 false false false", id="not read"),
            pytest.param("0 0 5 input.0 input value 4 5 -2 true false false", id="NaN"),
            pytest.param("0 0 5 input.0 input value 4 5 -2 false true false", id="infinite"),
            pytest.param("0 0 5 input.0 input value 4 5 -2 - - -", id="not recorded"),
        ],
    )
    def test_not_without_such_a_tensor(self, ask, later: str) -> None:
        db = births(ask, f"output.0 {INF_ABOVE}").table("tensors", TENSORS, later)
        assert db.rows() == [(0, 0, 3)]

    def test_not_when_a_call_made_that_tensor(self, ask) -> None:
        db = births(ask, f"output.0 {INF_ABOVE}").table(
            "tensors",
            TENSORS,
            "0 0 4 output.0 output value 4 5 -2 false false false",
            "0 0 5 input.0 input value 4 5 -2 false false false",
        )
        assert db.rows() == [(0, 0, 3)]

    def test_a_result_alike_after_it_did_not_make_that_tensor(self, ask) -> None:
        db = births(ask, f"output.0 {INF_ABOVE}").table(
            "tensors",
            TENSORS,
            "0 0 5 input.0 input value 4 5 -2 false false false",
            "0 0 5 output.0 output value 4 5 -2 false false false",
        )
        assert db.rows() == []

    def test_only_the_next_tensor_of_that_size_that_nobody_made_counts(self, ask) -> None:
        db = births(ask, f"output.0 {INF_ABOVE}").table(
            "tensors",
            TENSORS,
            "0 0 5 input.0 input value 4 7 1 false false false",
            "0 0 6 input.0 input value 4 5 -2 false false false",
        )
        assert db.rows() == [(0, 0, 3)]

    def test_the_order_of_what_one_call_reads_does_not_matter(self, ask) -> None:
        reads = (
            "0 0 5 input.0 input value 4 7 1 false false false",
            "0 0 5 input.1 input value 4 5 -2 false false false",
        )
        told = []
        for tensors in (reads, reads[::-1]):
            db = births(ask, f"output.0 {INF_ABOVE}").table("tensors", TENSORS, *tensors)
            told.append(db.rows())
        assert told[0] == told[1]

    @pytest.mark.parametrize(
        "result",
        [
            "false false true true inf -inf 4",
            "false true true false inf -2 4",
            NAN,
        ],
        ids=["both infinities", "NaN and inf", "NaN"],
    )
    def test_no_clamp_cuts_off_both_sides_or_nan(self, ask, result: str) -> None:
        db = births(ask, f"output.0 {result}")
        db.table("tensors", TENSORS, "0 0 5 input.0 input value 4 3 -2 false false false")
        assert db.rows() == [(0, 0, 3)]

    def test_another_result_of_the_call_stays_loose(self, ask) -> None:
        db = births(ask, f"output.0 {INF_ABOVE}", f"output.1 {NAN}")
        db.table("tensors", TENSORS, "0 0 5 input.0 input value 4 5 -2 false false false")
        assert db.rows() == [(0, 0, 3)]


class TestInPassing:
    """Call 3 of forward reads a bad value and makes one, and the record goes on."""

    def passing(
        self,
        ask,
        *,
        kind: str = "compute",
        phase: str = "forward",
        requires_grad: str = "false",
        sources: tuple[str, ...] = ("unmade",),
        last: int = 9,
    ):
        db = ask("nan/loose_ends")
        db.table("calls", CALLS, f"0 0 3 {kind} {phase} -", f"0 0 {last} compute forward -")
        db.table("bad_calls", BAD_CALLS, f"0 0 3 {kind} true true")
        db.table("unread", UNREAD, f"0 0 3 output.0 {requires_grad} true false false 3 -2 4")
        reads = [f"0 0 3 input.{n} {source} 0 1" for n, source in enumerate(sources)]
        return db.table("bad_reads", READS, *reads)

    def test_what_came_from_nowhere_is_looked_at(self, ask) -> None:
        assert self.passing(ask).rows() == []
        assert self.passing(ask, sources=("unmade", "unmade")).rows() == []

    @pytest.mark.parametrize("source", ["made", "allocated", "lost"])
    def test_not_what_came_from_a_call_on_record(self, ask, source: str) -> None:
        assert self.passing(ask, sources=("unmade", source)).rows() == [(0, 0, 3)]

    def test_not_when_the_result_feeds_a_gradient(self, ask) -> None:
        assert self.passing(ask, requires_grad="true").rows() == [(0, 0, 3)]

    def test_not_when_it_is_not_recorded_whether_the_result_feeds_a_gradient(self, ask) -> None:
        assert self.passing(ask, requires_grad="-").rows() == [(0, 0, 3)]

    def test_not_when_that_is_known_of_one_of_its_results_only(self, ask) -> None:
        result = "true false false 3 -2 4"
        db = ask("nan/loose_ends")
        db.table("calls", CALLS, "0 0 3 compute forward -", "0 0 9 compute forward -")
        db.table("bad_calls", BAD_CALLS, "0 0 3 compute true true")
        db.table("bad_reads", READS, "0 0 3 input.0 unmade - -")
        outputs = (f"0 0 3 output.{n} {grad} {result}" for n, grad in enumerate(("false", "-")))
        assert db.table("unread", UNREAD, *outputs).rows() == [(0, 0, 3)]

    def test_not_at_the_end_of_the_record(self, ask) -> None:
        assert self.passing(ask, last=2).rows() == [(0, 0, 3)]

    @pytest.mark.parametrize("phase", ["backward", "optimizer", "-"])
    def test_not_outside_of_forward(self, ask, phase: str) -> None:
        assert self.passing(ask, phase=phase).rows() == [(0, 0, 3)]

    @pytest.mark.parametrize("kind", ["comm", "module", "saved"])
    def test_not_in_a_call_of_another_kind(self, ask, kind: str) -> None:
        assert self.passing(ask, kind=kind).rows() == [(0, 0, 3)]

    def test_not_when_another_of_its_results_is_read(self, ask) -> None:
        db = self.passing(ask).table("edges", EDGES, "0 0 3 78 0 5 carries")
        assert db.rows() == [(0, 0, 3)]

    @pytest.mark.parametrize(
        ("read", "rows"),
        [
            ("0 0 3 input.0 input", []),
            ("0 0 3 output.0 output", [(0, 0, 3)]),
            ("0 0 2 input.0 input", [(0, 0, 3)]),
            ("0 1 3 input.0 input", [(0, 0, 3)]),
            ("1 0 3 input.0 input", [(0, 0, 3)]),
        ],
    )
    def test_what_stood_at_the_limit_of_its_dtype_is_tried_out(
        self, ask, read: str, rows: list
    ) -> None:
        db = births(ask, f"output.0 {INF_ABOVE}")
        assert db.table("saturated", "step rank seq slot direction", read).rows() == rows


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/loose_ends").rows() == []
