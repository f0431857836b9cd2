from __future__ import annotations

import pytest

MEMBERS = "step instance rank recorded seq name api dtype reduce_op in_backward reads read_max"
HANDOVERS = "step instance rank seq gives may_give gets"
ENTRIES = "step rank seq entry slots found"
PLACES = "step rank seq entry"
SHARDS = "step rank lineage"


class Instance:
    """An instance `i` of ranks 0 and 1, whose results are bad; each part may be changed."""

    def __init__(self) -> None:
        self.api, self.dtype, self.op = "all_reduce", "float16", "SUM"
        self.in_backward = "false"
        self.brought = ["true 40000", "true 30000"]
        self.recorded = ["true", "true"]
        self.given = ["false false", "false false"]
        self.got = [0, 1]
        self.received = [0, 1]
        self.living = [0, 1]
        self.onsets = ["0 0 5 received", "0 1 5 received"]
        self.lineage = "false"

    def rows(self, ask, columns: str = "") -> list:
        db = ask("nan/communication_origins")
        members = []
        for rank, (on, side) in enumerate(zip(self.recorded, self.brought, strict=True)):
            call = f"{self.api}.{rank} {self.api} {self.dtype} {self.op} {self.in_backward}"
            members.append(f"0 i {rank} {on} 5 {call} {side}")
        db.table("members", MEMBERS, *members)
        gets = [str(rank in self.got).lower() for rank in (0, 1)]
        roles = (f"0 i {rank} 5 {self.given[rank]} {gets[rank]}" for rank in (0, 1))
        db.table("handovers", HANDOVERS, *roles)
        entries = (f"0 {rank} 5 received [output.0] [inf]" for rank in self.received)
        db.table("entries", ENTRIES, *entries)
        db.table("living", PLACES, *(f"0 {rank} 5 received" for rank in self.living))
        db.table("onsets", PLACES, *self.onsets)
        db.table("shards", SHARDS, *(f"0 {rank} {self.lineage}" for rank in (0, 1)))
        return db.rows(columns)


@pytest.fixture
def instance() -> Instance:
    return Instance()


def test_every_rank_that_got_one(ask, instance) -> None:
    rest = ("all_reduce", "float16", True, 70000.0, 2, False, "order", ["inf"], ["output.0"])
    assert instance.rows(ask) == [
        (0, "i", 0, 5, "all_reduce.0", *rest),
        (0, "i", 1, 5, "all_reduce.1", *rest),
    ]


def test_only_the_ranks_that_got_one(ask, instance) -> None:
    instance.got = [1]
    assert instance.rows(ask, "rank") == [(1,)]


def test_told_when_it_came_after_a_backward_call(ask, instance) -> None:
    instance.in_backward = "true"
    assert instance.rows(ask, "rank in_backward") == [(0, True), (1, True)]


def test_not_when_a_member_is_not_on_record(ask, instance) -> None:
    instance.recorded[1], instance.brought[1] = "false", "- -"
    assert instance.rows(ask) == []


@pytest.mark.parametrize("given", ["true false", "false true"], ids=["brought", "may have brought"])
def test_not_when_a_member_brought_one(ask, instance, given: str) -> None:
    instance.given[1] = given
    assert instance.rows(ask) == []


def test_not_where_it_died_out(ask, instance) -> None:
    instance.living = [0]
    assert instance.rows(ask, "rank") == [(0,)]


def test_not_where_the_result_was_recorded_as_finite(ask, instance) -> None:
    instance.received = [1]
    assert instance.rows(ask, "rank") == [(1,)]


def test_by_order_one_member_must_have_been_finite_until_then(ask, instance) -> None:
    instance.onsets = ["0 0 5 received", "0 1 2 birth"]
    assert instance.rows(ask, "rank") == [(0,), (1,)]
    instance.onsets = ["0 0 3 received", "0 1 2 birth"]
    assert instance.rows(ask, "rank") == []
    instance.onsets = ["0 0 5 import", "0 1 5 import"]
    assert instance.rows(ask, "rank") == []
    instance.onsets, instance.got = ["0 0 5 received", "0 1 2 birth"], [1]
    assert instance.rows(ask, "rank") == []


def test_by_lineage_earlier_bad_values_do_not_matter(ask, instance) -> None:
    instance.onsets = ["0 0 3 received", "0 1 2 birth"]
    instance.lineage = "true"
    assert instance.rows(ask, "rank certainty") == [(0, "lineage"), (1, "lineage")]


@pytest.mark.parametrize(
    ("api", "op", "dtype", "brought", "overflows"),
    [
        ("all_reduce", "SUM", "float16", "60000 50000", True),
        ("all_reduce", "-", "float16", "60000 50000", True),
        ("all_reduce", "SUM", "float16", "30000 30000", False),
        ("all_reduce", "SUM", "bfloat16", "60000 50000", False),
        ("all_reduce", "SUM", "bfloat16", "2e38 2e38", True),
        ("all_reduce", "SUM", "float32", "3e38 3e38", True),
        ("reduce", "SUM", "float16", "60000 50000", True),
        ("reduce_scatter", "SUM", "float16", "60000 50000", True),
        ("reduce_scatter_tensor", "SUM", "float16", "60000 50000", True),
        ("_reduce_scatter_base", "SUM", "float16", "60000 50000", True),
        ("all_reduce", "MAX", "float16", "60000 50000", False),
        ("all_reduce", "MIN", "float16", "60000 50000", False),
        ("all_reduce", "BAND", "float16", "60000 50000", False),
        ("broadcast", "-", "float16", "60000 50000", False),
        ("all_gather", "-", "float16", "60000 50000", False),
        ("all_to_all_single", "-", "float16", "60000 50000", False),
    ],
)
def test_overflows_when_the_operation_adds_and_the_magnitudes_leave_the_range(
    ask, instance, api: str, op: str, dtype: str, brought: str, overflows: bool
) -> None:
    instance.api, instance.op, instance.dtype = api, op, dtype
    instance.brought = [f"true {magnitude}" for magnitude in brought.split()]
    assert instance.rows(ask, "rank overflows") == [(0, overflows), (1, overflows)]


@pytest.mark.parametrize("op", ["PRODUCT", "PROD"])
def test_a_product_overflows_whatever_the_sum(ask, instance, op: str) -> None:
    instance.op, instance.brought = op, ["true 300", "true 300"]
    assert instance.rows(ask, "overflows") == [(True,), (True,)]


def test_magnitudes_or_a_limit_that_are_not_recorded_may_overflow(ask, instance) -> None:
    instance.brought = ["true 1", "true -"]
    assert instance.rows(ask, "overflows brought") == [(True, 1.0), (True, 1.0)]
    instance.brought, instance.dtype = ["true 1", "true 1"], "-"
    assert instance.rows(ask, "overflows") == [(True,), (True,)]


def test_what_a_member_does_not_read_is_not_added(ask, instance) -> None:
    instance.brought = ["true 40000", "false 40000"]
    assert instance.rows(ask, "brought overflows") == [(40000.0, False), (40000.0, False)]
    instance.brought = ["true 40000", "false -"]
    assert instance.rows(ask, "brought overflows") == [(40000.0, False), (40000.0, False)]


def test_nothing_handed_over_gives_nothing(ask) -> None:
    assert ask("nan/communication_origins").rows() == []
