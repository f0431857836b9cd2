from __future__ import annotations

import math

import pytest

PAIR = "pair kind dtype_a dtype_b shape padding padded otherwise"
FOUND = "pair numel unequal beyond aa bb dd first_place roundings unequal_rows error"


def verdict(ask, pair: str, found: str, columns: str = "status"):
    db = (
        ask("checkpoint/verdicts")
        .table("tensor_pairs", PAIR, pair)
        .table("differences", FOUND, found)
    )
    return db.rows(columns)


F32 = "0 weight float32 float32 [10,4] 0 0 -"
MIXED = "0 weight float32 bfloat16 [10,4] 0 0 -"


@pytest.mark.parametrize(
    ("pair", "found", "status"),
    [
        (F32, "0 40 0 0 1 1 0 - 15 0 -", "equal"),
        (F32, "0 40 1 1 1 1 1 7 0 1 -", "different"),
        (F32, "0 40 9 9 1 1 1 7 2 1 -", "rounded"),
        (MIXED, "0 40 0 0 1 1 0 - 0 0 -", "rounded"),
        (MIXED, "0 40 30 0 1 1 1 - 0 0 -", "rounded"),
        (MIXED, "0 40 30 1 1 1 1 7 0 0 -", "different"),
        (F32, "0 40 0 0 1 1 0 - 15 0 unreadable", "incomparable"),
        ("0 weight float32 float32 [10,4] 3 0 -", "0 40 0 0 1 1 0 - 15 0 -", "padding"),
        ("0 weight float32 float32 [10,4] 3 0 -", "0 40 1 1 1 1 1 3 0 1 -", "different"),
        ("0 tied float32 float32 [10,4] 0 0 only_in_a", "0 40 0 0 1 1 0 - 15 0 -", "tied"),
        ("0 tied float32 float32 [10,4] 0 0 only_in_a", "0 40 1 1 1 1 1 3 0 1 -", "only_in_a"),
        # rows 7, 8 and 9 of 10 differ; up to 7 rows may be padding
        ("0 weight float32 float32 [10,4] 0 8 -", "0 40 12 12 1 1 1 28 0 3 -", "padding"),
        ("0 weight float32 float32 [10,4] 0 8 -", "0 40 12 12 1 1 1 27 0 3 -", "different"),
        ("0 weight float32 float32 [10,4] 0 3 -", "0 40 12 12 1 1 1 28 0 3 -", "different"),
    ],
)
def test_status(ask, pair: str, found: str, status: str) -> None:
    assert verdict(ask, pair, found) == [(status,)]


def test_assumed_padding_is_counted(ask) -> None:
    pair = "0 weight float32 float32 [10,4] 0 8 -"
    rows = verdict(ask, pair, "0 40 12 12 1 1 1 28 0 3 -", "assumed_padding")
    assert rows == [(3,)]


def test_norms(ask) -> None:
    # a = (3, 4), b = (3, 5): aa 25, bb 34, dd 1
    columns = "l2 relative_l2 cos scale"
    ((l2, relative, cos, scale),) = verdict(ask, F32, "0 2 1 1 25 34 1 1 0 1 -", columns)
    assert (l2, relative) == (1.0, 0.2)
    assert cos == pytest.approx(29 / math.sqrt(25 * 34))
    assert scale == pytest.approx(29 / 25)


@pytest.mark.parametrize(
    ("aa", "bb", "dd", "cos", "relative"),
    [(0, 0, 0, 1.0, 0.0), (0, 4, 4, None, math.inf), (4, 0, 4, None, 1.0), (4, 4, 16, -1.0, 2.0)],
)
def test_zero_tensors(ask, aa: int, bb: int, dd: int, cos, relative: float) -> None:
    found = f"0 2 1 1 {aa} {bb} {dd} 1 0 1 -"
    assert verdict(ask, F32, found, "cos relative_l2") == [(cos, relative)]


def test_a_pair_without_elements(ask) -> None:
    pair = "0 weight float32 float32 [0,4] 0 8 -"
    assert verdict(ask, pair, "0 0 0 0 0 0 0 - 15 0 -") == [("equal",)]


def test_no_pairs(ask) -> None:
    assert ask("checkpoint/verdicts").rows() == []
