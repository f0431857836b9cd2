"""Compares large arrays of floats in one pass, by a loop that numba compiles for this processor.

https://numba.readthedocs.io/en/stable/user/performance-tips.html

It is the fast half of `difference`, which holds the rules and does what is odd: a run of elements
that are finite on both sides is added here, up to the first block with a NaN or an infinity. A loop
is compiled once for each pair of dtypes and kept on disk, beside this file or in the user's cache.

Arrays come as numba can index them: bfloat16 as uint16, float16 as int16, dtypes of one byte as
uint8 with a table of their 256 values. Differences and ratios are float32 (float64 if a side is),
sums are float64. Non-negative floats order as their bits do, so maxima are taken of integers, for
which processors have vector instructions that compilers use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
from numba import njit, types
from numba.extending import overload

Array = np.ndarray[Any, np.dtype[Any]]

STEP = 2048
"""Elements of a block: those of both sides stay in the first cache."""

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
BFLOAT16, FLOAT16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
AS_INTEGER = {BFLOAT16: np.dtype(np.uint16), FLOAT16: np.dtype(np.int16)}
MIXED = (FLOAT32, BFLOAT16, FLOAT16)
"""Dtypes of which two different ones are compared."""

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64


def covers(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    """Tell whether arrays of two dtypes are compared here."""
    if a != b:
        return a in MIXED and b in MIXED
    return a in (*MIXED, FLOAT64) or (a.itemsize == 1 and a.kind in "iufV")


def scan(a: Array, b: Array, start: int) -> tuple[Any, ...]:
    """Return what differs from `start` on, up to a block with a number that is not finite.

    Args:
        a, b: flat arrays of one size, aligned, of dtypes that are covered.
        start: where to begin.

    Returns:
        Where it stopped, and the values of `Difference` from `unequal` to `last`.
    """
    tiny = np.finfo(f64 if a.dtype == FLOAT64 else f32).smallest_subnormal
    found: tuple[Any, ...] = scan_all(
        _indexable(a), _indexable(b), start, tiny, _values(a.dtype), a.dtype == b.dtype
    )
    return found


def rounds(wide: Array, target: Array, narrow: np.dtype[Any]) -> bool:
    """Tell whether finite float32, rounded to nearest even, is the target."""
    return bool(round_all(_indexable(wide), _indexable(target), AS_INTEGER[narrow].type(0)))


def _indexable(array: Array) -> Array:
    view = array.view(np.uint8 if array.itemsize == 1 else AS_INTEGER.get(array.dtype, array.dtype))
    view.flags.writeable = False  # one loop for both kinds of arrays
    return view


def _values(dtype: np.dtype[Any]) -> Array:
    """Return the value of each byte for dtypes of one byte."""
    return np.arange(256 if dtype.itemsize == 1 else 0, dtype=np.uint8).view(dtype).astype(f32)


def kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function to compile when it is first called, and to keep where a disk allows it."""
    try:
        compiled = njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # no folder to keep it in
        compiled = njit(nogil=True, error_model="numpy")(function)
    return cast("Callable[..., Any]", compiled)


block = njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
"""Makes a part of such a function; sums are taken in any order, several at a time."""


def number(raw: Any, values: Any) -> Any:
    """Return the number that an element stands for."""


def bits(x: Any) -> Any:
    """Return the bits of a float as an integer of its size; of an integer, itself."""


def of_bits(x: Any) -> Any:
    """Return the float of these bits."""


def rounded(x: Any, raw: Any) -> Any:
    """Return a finite float32, rounded to nearest even to the dtype of an element, as float32."""


def narrower(x: Any, raw_a: Any, raw_b: Any) -> Any:
    """Return a number, rounded to the dtype of lower precision of two elements."""


@overload(number, strict=False)
def _number(raw: Any, values: Any) -> Any:
    if raw == types.uint16:
        return lambda raw, values: i32(i32(raw) << i32(16)).view(f32)
    if raw == types.uint8:
        return lambda raw, values: values[raw]
    if raw == types.int16:
        return _of_float16
    return lambda raw, values: raw


def _of_float16(raw: Any, values: Any) -> Any:
    """Move the bits to their places in float32, whose exponents are 112 larger."""
    low = i32(i32(raw & i32(0x7FFF)) << i32(13))
    scaled = f32(i32(low).view(f32) * f32(2.0**112)).view(i32)
    magnitude = scaled if low < i32(0x0F800000) else i32(low | i32(0x7F800000))
    return i32(magnitude | i32(i32(raw & i32(0x8000)) << i32(16))).view(f32)


@overload(bits, strict=False)
def _bits(x: Any) -> Any:
    if x == types.float32:
        return lambda x: f32(x).view(i32)
    if x == types.float64:
        return lambda x: f64(x).view(i64)
    return lambda x: x


@overload(of_bits, strict=False)
def _of_bits(x: Any) -> Any:
    if x == types.int32:
        return lambda x: i32(x).view(f32)
    return lambda x: i64(x).view(f64)


@overload(rounded, strict=False)
def _rounded(x: Any, raw: Any) -> Any:
    return _to_bfloat16 if raw == types.uint16 else _to_float16


def _to_bfloat16(x: Any, raw: Any) -> Any:
    whole = f32(x).view(i32)
    up = i32(i32(0x7FFF) + i32(i32(whole >> i32(16)) & i32(1)))
    return i32(i32(whole + up) & i32(-0x10000)).view(f32)


def _to_float16(x: Any, raw: Any) -> Any:
    whole = f32(x).view(i32)
    up = i32(i32(0xFFF) + i32(i32(whole >> i32(13)) & i32(1)))
    normal = i32(i32(whole + up) & i32(-0x2000)).view(f32)
    small = f32(np.rint(f32(x * f32(2.0**24))) * f32(2.0**-24))
    kept = small if abs(x) < f32(2.0**-14) else normal
    return kept if abs(kept) < f32(2.0**16) else f32(math.copysign(f32(math.inf), x))


@overload(narrower, strict=False)
def _narrower(x: Any, raw_a: Any, raw_b: Any) -> Any:
    if raw_a == raw_b:
        return lambda x, raw_a, raw_b: x
    if types.uint16 in (raw_a, raw_b):  # bfloat16 has the fewest digits
        return lambda x, raw_a, raw_b: rounded(x, np.uint16(0))
    return lambda x, raw_a, raw_b: rounded(x, np.int16(0))


@block
def equal_block(a: Array, b: Array, values: Array) -> tuple[float, bool]:
    """Return the sum of squares of a in a block, and whether b has other bits."""
    total, other = 0.0, i32(0)
    for i in range(a.size):
        x = f64(number(a[i], values))
        total += x * x
        other = i32(other | i32(bits(a[i]) != bits(b[i])))
    return total, bool(other)


@block
def unequal_block(a: Array, b: Array, one: Any, values: Array) -> tuple[Any, ...]:
    """Return unequal, beyond, aa, bb, dd, and the bits of the largest difference and ratio."""
    unequal, beyond = i32(0), i32(0)
    aa = bb = dd = 0.0
    largest = ratio = one
    for i in range(a.size):
        x, y = number(a[i], values), number(b[i], values)
        wide_x, wide_y = f64(x), f64(y)
        wide_d = wide_x - wide_y
        aa += wide_x * wide_x
        bb += wide_y * wide_y
        dd += wide_d * wide_d
        d, magnitude, of_y = abs(x - y), bits(abs(x)), bits(abs(y))
        magnitude = of_y if of_y > magnitude else magnitude
        magnitude = magnitude if magnitude > one else one  # of two zeros: not 0 / 0
        r = bits(d / of_bits(magnitude))
        ratio = r if r > ratio else ratio
        largest = bits(d) if bits(d) > largest else largest
        unequal = i32(unequal + i32(x != y))
        other = narrower(x, a[i], b[i]) != narrower(y, a[i], b[i])
        beyond = i32(beyond + i32((x != y) & other))
    return unequal, beyond, aa, bb, dd, largest, ratio


@block
def is_beyond(a: Array, b: Array, i: int, values: Array) -> bool:
    """Tell whether an element differs, also when the wider dtype is rounded to the narrower."""
    x, y = number(a[i], values), number(b[i], values)
    return bool((x != y) & (narrower(x, a[i], b[i]) != narrower(y, a[i], b[i])))


@kept
def scan_all(
    a: Array, b: Array, start: int, tiny: Any, values: Array, same: bool
) -> tuple[Any, ...]:
    """Do what `scan` does; bits are compared first as long as they are equal."""
    unequal = beyond = 0
    aa = bb = dd = 0.0
    largest = ratio = one = bits(tiny)
    first = last = -1
    calm, other, low = same, not same, start
    while low < a.size:
        high = min(low + STEP, a.size)
        square, differ = equal_block(a[low:high], b[low:high], values) if calm else (0.0, True)
        if not differ:
            if not math.isfinite(square):
                break
            aa, bb, low = aa + square, bb + square, high
            continue
        n, m, x, y, d, top, r = unequal_block(a[low:high], b[low:high], one, values)
        if not (math.isfinite(x + y + d) and math.isfinite(of_bits(top))):
            break
        unequal, beyond = unequal + n, beyond + m
        aa, bb, dd = aa + x, bb + y, dd + d
        largest, ratio = max(largest, top), max(ratio, r)
        calm = same and n == 0
        other = other or n > 0 or equal_block(a[low:high], b[low:high], values)[1]
        if m and first < 0:
            first = low
            while not is_beyond(a, b, first, values):
                first += 1
        last = low if m else last
        low = high
    if last >= 0:
        last = min(last + STEP, a.size) - 1
        while not is_beyond(a, b, last, values):
            last -= 1
    if not unequal:
        return low, 0, 0, other, aa, bb, 0.0, 0.0, 0.0, -1, -1
    return low, unequal, beyond, other, aa, bb, dd, of_bits(largest), of_bits(ratio), first, last


@block
def round_block(wide: Array, target: Array, raw: Any) -> bool:
    """Tell whether all of a block rounds to the target."""
    wrong = i32(0)
    for i in range(wide.size):
        wrong = i32(wrong | i32(bits(rounded(wide[i], raw)) != bits(target[i])))
    return not wrong


@kept
def round_all(wide: Array, target: Array, raw: Any) -> bool:
    """Tell whether all elements round to the target."""
    for low in range(0, wide.size, STEP):
        if not round_block(wide[low : low + STEP], target[low : low + STEP], raw):
            return False
    return True
