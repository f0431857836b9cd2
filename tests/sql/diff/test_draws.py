"""Two results of a random operation."""

from __future__ import annotations

import pytest

TENSORS = "step seq slot shape numel zero_count max min mean norm"
MILLION = "[1000,1000] 1000000"


def alike(ask, bench: str, target: str, *, api: str = "dropout", state: str = "- value") -> list:
    db = ask("diff/draws")
    db.table("call_pairs", "step bench_seq target_seq api", f"0 1 2 {api}")
    db.table("call_states", "step bench_seq target_seq in_kind out_kind", f"0 1 2 {state}")
    db.table(
        "tensor_pairs", "step bench_seq target_seq slot bench_slot is_input kind",
        "0 1 2 output.0 output.0 false value",
    )  # fmt: skip
    db.table("bench_tensors", TENSORS, f"0 1 output.0 {bench}")
    db.table("target_tensors", TENSORS, f"0 2 output.0 {target}")
    return [row[0] for row in db.rows("alike")]


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("500300 9 -9 0.002 1414.5", True),  # a share of zeros of 0.4998 against 0.5003
        ("505000 9 -9 0 1407", False),  # 7 standard deviations from it
        ("499800 9 -9 0.02 1414", False),  # the mean
        ("499800 9 -9 0 1500", False),  # the squares
        ("- 9 -9 - 1414", True),  # what is not on record says nothing
    ],
)
def test_dropout_of_half_a_million(ask, target: str, answer: bool) -> None:
    bench = f"{MILLION} 499800 9 -9 0 1414"
    assert alike(ask, bench, f"{MILLION} {target}") == [answer]
    assert alike(ask, f"{MILLION} {target}", bench) == [answer]


def test_a_dropout_of_channels_draws_once_for_each(ask) -> None:
    bench, target = (f"[8,8,125,125] 1000000 {zeros} 9 -9 0 1414" for zeros in (500000, 562500))
    assert alike(ask, bench, target, api="dropout2d") == [True]
    assert alike(ask, bench, target) == [False]


def test_only_random_operations_that_read_the_same(ask) -> None:
    text = f"{MILLION} 499800 9 -9 0 1414"
    assert alike(ask, text, text, api="gelu") == []
    assert alike(ask, text, text, state="value value") == []


def test_another_dtype_tells_nothing_of_the_draws(ask) -> None:
    db = ask("diff/draws")
    db.table("call_pairs", "step bench_seq target_seq api", "0 1 2 dropout")
    db.table("call_states", "step bench_seq target_seq in_kind out_kind", "0 1 2 - dtype")
    assert db.rows("target_seq alike") == [(2, None)]


def test_a_few_elements_tell_little(ask) -> None:
    assert alike(ask, "[8] 8 2 9 0 3 11", "[8] 8 5 9 0 2 10") == [True]
    assert alike(ask, "[1] 1 0 9 9 9 9", "[1] 1 0 2 2 2 2") == [True]
