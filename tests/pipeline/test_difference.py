"""Every number of a comparison, held against plain float64 over the whole arrays."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pipeline.difference import (
    A_TO_BF16,
    A_TO_FP16,
    B_TO_BF16,
    BLOCK,
    EVERY_ROUNDING,
    Difference,
    difference,
    unequal_rows,
)

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
SIZE = BLOCK + 777


def plain(a: Any, b: Any) -> Difference:
    """Return what is expected, without blocks and short cuts."""
    x, y = a.astype(np.float64).reshape(-1), b.astype(np.float64).reshape(-1)
    delta, unequal = np.abs(x - y), np.flatnonzero(x != y)
    larger = np.maximum(np.abs(x), np.abs(y))
    relative = delta[larger > 0] / larger[larger > 0]
    return Difference(
        numel=x.size, unequal=unequal.size, beyond=unequal.size, aa=x @ x, bb=y @ y,
        dd=delta @ delta, max_abs=delta.max(initial=0), max_rel=relative.max(initial=0),
        first=int(unequal[0]) if unequal.size else -1,
        last=int(unequal[-1]) if unequal.size else -1,
    )  # fmt: skip


def same(got: Difference, want: Difference) -> None:
    for key in ("numel", "unequal", "beyond", "first", "last"):
        assert getattr(got, key) == getattr(want, key), key
    for key, error in {
        "aa": 1e-12,
        "bb": 1e-12,
        "dd": 1e-12,
        "max_abs": 1e-7,
        "max_rel": 2e-7,
    }.items():
        assert getattr(got, key) == pytest.approx(getattr(want, key), rel=error), key


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("share", [0.0, 1e-5, 0.3, 1.0])
def test_against_plain_arithmetic(dtype: Any, share: float) -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal(SIZE).astype(dtype)
    b = a.copy()
    where = random.random(SIZE) < share
    where[[3, SIZE - 5]] = share > 0
    b[where] = (a[where].astype(np.float64) * 1.5 + 0.25).astype(dtype)
    same(difference(a, b), plain(a, b))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, np.bool_])
def test_integers(dtype: Any) -> None:
    random = np.random.default_rng(0)
    a = random.integers(0, 2, SIZE).astype(dtype)
    b = a.copy()
    b[[5, SIZE - 2]] = 1 - b[[5, SIZE - 2]]
    same(difference(a, b), plain(a, b))


def test_integers_beyond_the_digits_of_a_float() -> None:
    a = np.array([2**60, 5])
    found = difference(a, a + np.array([1, 0]))
    assert (found.unequal, found.first) == (1, 0)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e-12, 1e12, 1e25, 1e37])
def test_squares_that_float32_cannot_hold(scale: float) -> None:
    random = np.random.default_rng(0)
    a = (random.standard_normal(SIZE) * scale).astype(np.float32)
    b = (a * np.float32(1.001)).astype(np.float32)
    found, want = difference(a, b), plain(a, b)
    assert math.sqrt(found.dd) == pytest.approx(math.sqrt(want.dd), rel=1e-5)
    assert found.aa == pytest.approx(want.aa, rel=1e-6)


def test_small_differences_of_large_numbers() -> None:
    a = np.full(SIZE, 1000.0, np.float32)
    b = a.copy()
    b[7] = np.nextafter(np.float32(1000), np.float32(2000))
    found = difference(a, b)
    assert (found.unequal, found.first, found.last) == (1, 7, 7)
    assert found.max_abs == pytest.approx(float(b[7]) - 1000.0)
    assert found.dd == pytest.approx(found.max_abs**2)


def test_nan_and_infinities() -> None:
    nan, inf = math.nan, math.inf
    a = np.array([1, nan, nan, inf, inf, -inf, 2, 3], np.float32)
    b = np.array([1, nan, 5, inf, -inf, 7, 2, 4], np.float32)
    found = difference(a, b)
    assert (found.unequal, found.first, found.last) == (4, 2, 7)
    assert (found.nan_a, found.nan_b, found.inf_a, found.inf_b) == (2, 1, 3, 2)
    assert (found.aa, found.bb, found.dd, found.max_abs) == (14.0, 21.0, 1.0, 1.0)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_wider_dtype_with_numbers_that_are_not_finite(odd: float) -> None:
    a = np.array([1, odd, odd, 3.4e38], np.float32)
    b = np.array([1, 5, odd, math.inf], ml_dtypes.bfloat16)  # the last is a, rounded
    for x, y in ((a, b), (b, a)):
        found = difference(x, y)
        assert (found.unequal, found.beyond, found.first, found.last) == (2, 1, 1, 1)


def test_infinities_that_are_equal_are_counted() -> None:
    a = np.array([1, math.inf], np.float32)
    found = difference(a, a)
    assert (found.unequal, found.inf_a, found.inf_b, found.aa) == (0, 1, 1, 1.0)


def test_bits_and_numbers() -> None:
    a, b = np.array([0.0, 1], np.float32), np.array([-0.0, 1], np.float32)
    assert (difference(a, b).unequal, difference(a, b).bits_differ) == (0, True)
    assert not difference(a, a).bits_differ
    other = np.array([0x7FC00001], np.uint32).view(np.float32)
    found = difference(np.array([math.nan], np.float32), other)
    assert (found.unequal, found.bits_differ) == (0, True)


def test_relative_to_the_larger_magnitude() -> None:
    a, b = np.array([0.0, 0, 10], np.float32), np.array([0.0, 1e-30, 11], np.float32)
    assert difference(a, b).max_rel == 1.0
    assert difference(a[2:], b[2:]).max_rel == pytest.approx(1 / 11)
    assert difference(-b[2:], b[2:]).max_rel == 2.0


@pytest.mark.parametrize(
    ("narrow", "bit"), [(ml_dtypes.bfloat16, A_TO_BF16), (np.float16, A_TO_FP16)]
)
def test_roundings(narrow: Any, bit: int) -> None:
    a = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    b = a.astype(narrow).astype(np.float32)
    assert difference(a, b).roundings == bit
    assert difference(b, a).roundings == bit << 2
    b[SIZE - 1] *= 1 + 2**-5
    assert difference(a, b).roundings == 0
    assert A_TO_BF16 << 2 == B_TO_BF16


def test_a_wider_dtype_is_compared_after_rounding() -> None:
    a = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)
    b = a.astype(ml_dtypes.bfloat16)
    found = difference(a, b)
    assert found.unequal > SIZE / 2
    assert (found.beyond, found.first) == (0, -1)
    b.view(np.uint16)[100] += 2
    assert (difference(a, b).beyond, difference(a, b).first, difference(b, a).first) == (
        1,
        100,
        100,
    )


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    empty = np.empty(shape, np.float32)
    assert difference(empty, empty) == Difference(roundings=EVERY_ROUNDING)


def test_scalars_views_and_byte_order() -> None:
    base = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    assert difference(np.float32(3).reshape(()), np.float32(4).reshape(())).dd == 1
    assert difference(base.T, np.ascontiguousarray(base.T)).unequal == 0
    assert difference(base, base.astype(">f4")).unequal == 0
    raw = b"x" + base.tobytes()
    assert difference(np.frombuffer(raw, np.float32, 12, 1), base.reshape(-1)).unequal == 0


def test_complex_numbers() -> None:
    a = np.array([1 + 2j, 3 + 4j], np.complex64)
    b = np.array([1 + 2j, 3 + 5j], np.complex64)
    found = difference(a, b)
    assert (found.first, found.last, found.dd) == (1, 1, 1.0)


def test_rows() -> None:
    a = np.zeros((4, 3), np.float32)
    b = a.copy()
    b[1, 2] = b[3, 0] = b[3, 1] = 1
    assert unequal_rows(a, b) == 2
