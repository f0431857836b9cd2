from __future__ import annotations

import duckdb
import pytest

CALLS = "step rank seq kind name api"
TENSORS = (
    "step rank seq slot direction role dtype shape numel max min has_nan has_posinf has_neginf"
)
USES = "step rank group_id of_seq ranks_hash"
SUM = "0 0 5 comm sum.4 all_reduce"
RANKS_0_1 = duckdb.sql("SELECT hash([0, 1]::BIGINT[])").fetchall()[0][0]


def sides(ask, *tensors: str, call: str = SUM, **params: bool):
    """Return the question for call 5 with these tensors (from the slot on)."""
    db = ask("comm/operations", **params).table("calls", CALLS, call)
    return db.table("tensors", TENSORS, *(f"0 0 5 {tensor}" for tensor in tensors))


def test_every_column_of_an_operation(ask) -> None:
    db = ask("comm/operations").table(
        "calls",
        CALLS + " group_id group_seq peer root tag reduce_op async phase",
        "2 1 4 compute mul.0 mul - - - - - - - backward",
        "2 1 5 comm sum.4 all_reduce g 7 3 0 9 SUM true backward",
    )
    db.table("group_uses", USES, f"2 1 g - {RANKS_0_1}")
    db.table(
        "tensors",
        TENSORS,
        "2 1 5 input.0 input value float16 [2,3] 6 4 -5 false false false",
        "2 1 5 output.0 output value float16 [2,4] 8 4 -5 false true false",
    )
    assert db.rows() == [
        (
            *(2, 1, 5, 0, "sum.4", "all_reduce", "g", RANKS_0_1, 7, 3, 0, 9, "SUM", True),
            *(False, True, True, False, True, 5.0, "float16", [2, 3], [2, 4], 1, None, 1, True),
        )
    ]


def test_what_is_not_recorded_stays_unknown(ask) -> None:
    db = ask("comm/operations").table("calls", CALLS, "0 0 5 comm barrier.0 barrier")
    assert db.rows() == [
        (
            *(0, 0, 5, 0, "barrier.0", "barrier", None, None, None, None, None, None, None, None),
            *(False, False, False, False, False, None, None, None, None, 0, None, None, False),
        )
    ]


@pytest.mark.parametrize("kind", ["compute", "module", "optimizer", "saved"])
def test_communication_alone(ask, kind: str) -> None:
    assert sides(ask, call=SUM.replace("comm", kind)).rows() == []


@pytest.mark.parametrize(
    ("api", "sends"),
    [("send", True), ("isend", True), ("recv", False), ("irecv", False), ("all_reduce", False)],
)
def test_which_side_of_a_transfer_it_is(ask, api: str, sends: bool) -> None:
    assert sides(ask, call=f"0 0 5 comm a {api}").rows("sends") == [(sends,)]


@pytest.mark.parametrize(
    ("tensor", "reads", "fills"),
    [
        ("input.0 input value", True, False),
        ("output.0 output value", False, True),
        ("input.0 input buffer", False, False),
        ("output.0 output buffer", False, False),
        ("output.1 output echo", False, False),
        ("gradient.0 gradient value", False, False),
    ],
)
def test_what_it_reads_and_what_it_fills(ask, tensor: str, reads: bool, fills: bool) -> None:
    db = sides(ask, f"{tensor} float32 [2] 2 1 0 true false false")
    bad = (reads, fills)
    assert db.rows("reads fills read_bad made_bad") == [(reads, fills, *bad)]


@pytest.mark.parametrize(
    ("found", "bad", "bad_as_nan"),
    [
        ("true - -", True, True),
        ("false true false", True, False),
        ("false false true", True, False),
        ("- true -", True, False),
        ("false false false", False, False),
        ("false - -", False, False),
        ("- - -", False, False),
    ],
)
def test_bad_is_nan_or_an_infinity(ask, found: str, bad: bool, bad_as_nan: bool) -> None:
    for nan_only, expected in ((False, bad), (True, bad_as_nan)):
        db = sides(
            ask,
            f"input.0 input value float32 [2] 2 1 0 {found}",
            f"output.0 output value float32 [2] 2 1 0 {found}",
            nan_only=nan_only,
        )
        assert db.rows("read_bad made_bad") == [(expected, expected)]


def test_one_bad_tensor_of_several(ask) -> None:
    db = sides(
        ask,
        "input.0.0 input value float32 [2] 2 1 0 false - -",
        "input.0.1 input value float32 [2] 2 1 0 true - -",
        "output.0 output value float32 [2] 2 1 0 false - -",
    )
    assert db.rows("read_bad made_bad") == [(True, False)]


def test_the_largest_magnitude_that_it_reads(ask) -> None:
    db = sides(
        ask,
        "input.0.0 input value float32 [2] 2 3 -4 false - -",
        "input.0.1 input value float32 [2] 2 1 -9 false - -",
        "input.0.2 input value float32 [2] 2 - - true - -",
        "output.0 output value float32 [2] 2 50 0 false - -",
    )
    assert db.rows("read_max") == [(9.0,)]
    assert sides(ask, "input.0 input value float32 [2] 2 - - - - -").rows("read_max") == [(None,)]


def test_shapes_are_those_of_the_first_tensor_on_each_side(ask) -> None:
    db = sides(
        ask,
        "input.0.1 input value float32 [8] 8 1 0 - - -",
        "input.0.0 input value float32 [7] 7 1 0 - - -",
        "output.0.1 output value float32 [6] 6 1 0 - - -",
        "output.0.0 output value float32 [] 1 1 0 - - -",
    )
    assert db.rows("shape fill_shape") == [([7], [])]


def gathered(*bad: bool) -> list[str]:
    """Return a gathered list, a tensor of 4 elements for each member, NaN where `bad`."""
    return [
        f"output.0.{place} output value float32 [4] 4 1 0 {str(nan).lower()} - -"
        for place, nan in enumerate(bad)
    ]


def test_how_many_tensors_a_list_holds(ask) -> None:
    shard = "input.1 input value float32 [4] 4 1 0 false - -"
    call = "0 0 5 comm gather.0 all_gather"
    db = sides(ask, shard, *gathered(False, False, False), call=call)
    assert db.rows("parts ratio bad_parts") == [(3, 3, None)]


@pytest.mark.parametrize(
    ("api", "parts"),
    [
        ("all_gather", [1, 2]),
        ("gather", [1, 2]),
        ("all_to_all", [1, 2]),
        ("reduce_scatter", None),
        ("all_reduce", None),
    ],
)
def test_which_of_the_results_are_bad(ask, api: str, parts: list[int] | None) -> None:
    db = sides(ask, *gathered(False, True, True), call=f"0 0 5 comm a {api}")
    assert db.rows("bad_parts") == [(parts,)]


def test_results_that_are_bad_for_their_infinities(ask) -> None:
    part = "output.0.1 output value float32 [4] 4 1 0 false true -"
    call = "0 0 5 comm gather.0 all_gather"
    assert sides(ask, part, call=call).rows("bad_parts") == [([1],)]
    assert sides(ask, part, call=call, nan_only=True).rows("bad_parts") == [(None,)]


def test_results_are_in_the_order_of_their_numbers(ask) -> None:
    call = "0 0 5 comm gather.0 all_gather"
    assert sides(ask, *gathered(*[True] * 11), call=call).rows("bad_parts") == [(list(range(11)),)]


@pytest.mark.parametrize(
    ("read", "filled", "ratio"),
    [
        ("4", "16", 4),
        ("16", "4", 4),
        ("4", "4", 1),
        ("10", "4", 2),
        ("11", "4", 2),
        ("0", "4", None),
        ("-", "4", None),
    ],
)
def test_size_of_the_larger_side_over_the_smaller(ask, read: str, filled: str, ratio) -> None:
    db = sides(
        ask,
        f"input.1 input value float32 [4] {read} 1 0 - - -",
        f"output.0 output value float32 [4] {filled} 1 0 - - -",
    )
    assert db.rows("ratio") == [(ratio,)]


@pytest.mark.parametrize(
    ("own", "other", "in_backward"),
    [
        ("forward", "0 0 4 backward", True),
        ("forward", "0 0 6 backward", False),
        ("backward", "0 0 6 backward", False),
        ("forward", "0 0 4 forward", False),
        ("forward", "0 0 4 -", False),
        ("forward", "0 1 4 backward", False),
        ("forward", "1 0 4 backward", False),
    ],
    ids=["before", "after", "itself", "forward", "not recorded", "another rank", "another step"],
)
def test_in_backward_after_a_backward_call_of_the_step(
    ask, own: str, other: str, in_backward: bool
) -> None:
    calls = f"0 0 5 {own} comm all_reduce", f"{other} compute mul", "0 0 9 backward compute mul"
    db = ask("comm/operations").table("calls", "step rank seq phase kind api", *calls)
    assert db.rows("in_backward") == [(in_backward,)]


class TestGroup:
    """Three calls of rank 0 in step 0, two of them in one group."""

    def grouped(self, ask, groups: tuple[str, str, str], *uses: str):
        calls = (f"0 0 {5 + n} comm all_reduce {group}" for n, group in enumerate(groups))
        db = ask("comm/operations").table("calls", "step rank seq kind api group_id", *calls)
        return db.table("group_uses", USES, *uses)

    def test_every_call_of_a_group_has_its_ranks(self, ask) -> None:
        db = self.grouped(ask, ("g", "h", "g"), "0 0 h - 88", "0 0 g - 77")
        assert db.rows("seq group_id ranks_hash") == [(5, "g", 77), (6, "h", 88), (7, "g", 77)]

    def test_of_calls_whose_group_has_no_id_each_has_its_own(self, ask) -> None:
        db = self.grouped(ask, ("-", "g", "-"), "0 0 - 5 55", "0 0 - 7 77", "0 0 g - 66")
        assert db.rows("seq group_id ranks_hash") == [(5, None, 55), (6, "g", 66), (7, None, 77)]

    @pytest.mark.parametrize("use", ["0 0 h - 77", "0 1 g - 77", "1 0 g - 77", "0 0 - 8 77"])
    def test_not_the_ranks_of_another_group_rank_step_or_call(self, ask, use: str) -> None:
        db = self.grouped(ask, ("g", "-", "g"), use)
        assert db.rows("seq ranks_hash") == [(5, None), (6, None), (7, None)]


class TestBatch:
    """A batch_isend_irecv of a send to rank 1 and a receive from rank 2, as msprobe writes it."""

    ARGS = (
        '{"input.0.0":{"class_type":"P2POp","op":"isend","peer":1,"tag":3,"group_id":"g",'
        '"group_ranks":[0,1]},"input.0.1":{"class_type":"P2POp","op":"irecv","peer":2,"tag":null,'
        '"group_id":null,"group_ranks":null},"input.1":{"type":"int","value":0}}'
    )

    def batch(self, ask, *tensors: str):
        db = ask("comm/operations")
        db.table("calls", CALLS + " args", f"0 0 5 comm batch.0 batch_isend_irecv {self.ARGS}")
        return db.table("tensors", TENSORS, *tensors)

    def test_each_operation_has_a_row_of_its_own(self, ask) -> None:
        columns = "item name api group_id ranks_hash group_seq peer root tag async sends"
        assert self.batch(ask).rows(columns) == [
            (0, "batch.0", "isend", "g", RANKS_0_1, None, 1, None, 3, True, True),
            (1, "batch.0", "irecv", None, None, None, 2, None, None, True, False),
        ]

    def test_operations_are_in_the_order_of_their_numbers(self, ask) -> None:
        operations = (f'"input.0.{n}":{{"class_type":"P2POp","op":"isend"}}' for n in (10, 9, 2))
        args = f"{{{','.join(operations)}}}"
        db = ask("comm/operations")
        db.table("calls", CALLS + " args", f"0 0 5 comm batch.0 batch_isend_irecv {args}")
        assert db.rows("item") == [(2,), (9,), (10,)]

    def test_each_operation_has_its_own_tensors(self, ask) -> None:
        db = self.batch(
            ask,
            "0 0 5 input.0.0 input value float16 [2] 2 1 -7 true - -",
            "0 0 5 input.0.1 input buffer float32 [3] 3 9 0 true - -",
            "0 0 5 output.0.0 output echo float16 [2] 2 1 -7 true - -",
            "0 0 5 output.0.1 output value float32 [3] 3 9 0 false - -",
        )
        columns = "item reads fills read_bad made_bad read_max dtype shape fill_shape parts"
        assert db.rows(columns) == [
            (0, True, False, True, False, 7.0, "float16", [2], None, 1),
            (1, False, True, False, False, None, "float32", None, [3], 1),
        ]


def test_no_call_gives_nothing(ask) -> None:
    assert ask("comm/operations").rows() == []
