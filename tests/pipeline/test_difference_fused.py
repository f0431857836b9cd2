"""The compiled loop finds what the plain way does, number by number, for every pair of dtypes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pipeline.difference import A_TO_BF16, A_TO_FP16, BLOCK, EVERY_ROUNDING, Difference, difference
from pipeline.difference_fused import STEP, covers, scan

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
SAME = [np.float32, np.float64, np.float16, BF16, E4M3, np.int8, np.uint8, np.bool_, np.complex64]
MIXED = [
    (np.float32, BF16), (BF16, np.float32), (np.float32, np.float16), (np.float16, np.float32),
    (BF16, np.float16), (np.float16, BF16),
]  # fmt: skip
PAIRS = [(dtype, dtype) for dtype in SAME] + MIXED
OTHERS = [(np.int64, np.int64), (np.float64, np.float32), (E4M3, BF16), (np.int8, np.uint8)]
SIZES = [0, 1, 7, STEP - 1, STEP, STEP + 1, BLOCK, 3 * BLOCK + 4097]

ODD = [
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, -3e-42, 6e-8, 5.9e-5, -1e-39, 65504.0, 65519.0,
    65520.0, 3.39e38, -3.4e38, 448.0, 1.0, -1.0, 1 + 2**-8, 1 + 2**-9, 1 + 3 * 2**-11,
]  # fmt: skip
"""NaN, infinities, zeros, denormal and huge numbers of each dtype, and ties of rounding."""


def both(a: Any, b: Any) -> tuple[Difference, Difference]:
    """Return what is found the compiled and the plain way, after holding one against the other."""
    fused, plain = difference(a, b, fused=True), difference(a, b)
    for key in ("aa", "bb", "dd"):
        assert getattr(fused, key) == pytest.approx(getattr(plain, key), rel=1e-13, abs=0), key
    assert replace(fused, aa=plain.aa, bb=plain.bb, dd=plain.dd) == plain
    return fused, plain


def numbers(dtype: Any, size: int, scale: float = 1.0) -> Any:
    random = np.random.default_rng(size)
    with np.errstate(invalid="ignore", over="ignore"):
        return (random.standard_normal(size) * 3 * scale).astype(dtype)


def odd(dtype: Any, size: int, shift: int) -> Any:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.roll(np.resize(np.array(ODD, np.float64), size), shift).astype(dtype)


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.0, 1e-3, 1.0])
def test_random(a: Any, b: Any, size: int, share: float) -> None:
    x, y = numbers(a, size), numbers(b, size)
    where = np.random.default_rng(1).random(size) < share
    y[where] = numbers(b, size, 1.25)[where]
    fused, _ = both(x, y)
    assert fused.numel == size


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("shift", [0, 1, 8])
def test_odd_numbers(a: Any, b: Any, shift: int) -> None:
    size = 2 * BLOCK + 333
    both(odd(a, size, 0), odd(b, size, shift))
    for place in (0, 5, STEP, BLOCK + 1, size - 1):
        x, y = numbers(a, size), numbers(b, size)
        part = slice(place, place + 1 + shift)
        x[part] = odd(a, size, 0)[: x[part].size]
        y[part] = odd(b, size, shift)[: y[part].size]
        both(x, y)


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize("scale", [1e-41, 1e-38, 1e-22, 1e-7, 1e4, 1e19, 5e37])
def test_scales(a: Any, b: Any, scale: float) -> None:
    size = BLOCK + STEP + 5
    both(numbers(a, size, scale), numbers(b, size, -scale))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BF16])
def test_equal_but_for_the_sign_of_zero(dtype: Any) -> None:
    a = numbers(dtype, 5 * STEP)
    a[2 * STEP + 7] = 0
    b = a.copy()
    assert not both(a, b)[0].bits_differ
    b[2 * STEP + 7] = -0.0
    assert (both(a, b)[0].bits_differ, both(a, b)[0].unequal) == (True, 0)


@pytest.mark.parametrize(("narrow", "bit"), [(BF16, A_TO_BF16), (np.float16, A_TO_FP16)])
def test_roundings(narrow: Any, bit: int) -> None:
    a = numbers(np.float32, 3 * BLOCK + 77, 1e-3)
    a[BLOCK] = math.inf
    b = a.astype(narrow).astype(np.float32)
    assert both(a, b)[0].roundings == bit
    assert both(b, a)[0].roundings == bit << 2
    assert both(b, b)[0].roundings == bit | bit << 2
    b[-1] *= 1 + 2**-5
    assert both(a, b)[0].roundings == 0


def test_the_loop_itself_does_finite_numbers() -> None:
    a = numbers(np.float32, 3 * STEP)
    b = a + np.float32(1)
    stop, unequal, *_, first, last = scan(a, b, 0)
    assert (stop, unequal, first, last) == (a.size, a.size, 0, a.size - 1)
    b[STEP + 9] = math.nan
    assert scan(a, b, 0)[0] == STEP
    assert scan(a, b, 2 * STEP)[:2] == (3 * STEP, STEP)


def test_what_is_covered() -> None:
    flat = [tuple(map(np.dtype, pair)) for pair in PAIRS if pair[0] not in (np.bool_, np.complex64)]
    assert all(covers(*pair) for pair in flat)
    assert not any(covers(*map(np.dtype, pair)) for pair in OTHERS)


@pytest.mark.parametrize(("a", "b"), OTHERS)
def test_dtypes_without_a_loop(a: Any, b: Any) -> None:
    both(numbers(a, BLOCK + 9), numbers(b, BLOCK + 9, 0.5))


def test_nothing_to_compare() -> None:
    empty = np.empty((0, 3), np.float32)
    assert difference(empty, empty, fused=True) == Difference(roundings=EVERY_ROUNDING)
