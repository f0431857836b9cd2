"""Compares the values of two arrays in one pass, block by block, with sums in float64.

A block is small enough that all the work on it is done in the processor's cache. What is equal
costs little more than reading it; infinities and NaN are looked at only in blocks that hold any.

Sums of squares of float32: 512 neighbours at a time in float32, by SIMD, and those in float64. That
is good to 1e-6 at the very worst and to 1e-9 in a large tensor, as rounding errors cancel; where
float32 cannot hold the squares, all is done in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 1 << 17
"""Elements at a time; some arrays of this size fit into a core's cache."""
ROW = 512
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-25, 1e30
"""Means of squares that float32 holds well; products of smaller numbers would vanish."""

SAMPLE = 256
NARROW = (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16))
A_TO_BF16, A_TO_FP16, B_TO_BF16, B_TO_FP16 = (1 << n for n in range(4))
EVERY_ROUNDING = 15


@dataclass
class Difference:
    """What was found; parts of one pair add up by `checkpoint/differences`.

    Args:
        numel: elements compared.
        unequal: elements with other numbers; NaN equals NaN, -0.0 equals 0.0.
        beyond: those of them that differ also when the wider dtype is rounded to the narrower.
        bits_differ: some element has other bits.
        aa, bb, dd: sums of squares of a, of b and of a - b, over elements finite on both sides.
        max_abs: largest difference between finite elements.
        max_rel: largest of them relative to the larger of both magnitudes.
        first, last: places of elements counted in `beyond`, in the flat array; -1 for none.
        nan_a, nan_b, inf_a, inf_b: counts.
        roundings: bits of those roundings of one side that give the other (`A_TO_BF16`, ...).
    """

    numel: int = 0
    unequal: int = 0
    beyond: int = 0
    bits_differ: bool = False
    aa: float = 0.0
    bb: float = 0.0
    dd: float = 0.0
    max_abs: float = 0.0
    max_rel: float = 0.0
    first: int = -1
    last: int = -1
    nan_a: int = 0
    nan_b: int = 0
    inf_a: int = 0
    inf_b: int = 0
    roundings: int = EVERY_ROUNDING

    def row(self) -> tuple[Any, ...]:
        """Return the values, in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


def difference(a: Array, b: Array) -> Difference:
    """Return how two arrays of one shape differ; their dtypes may too."""
    found, width = Difference(), 2 if a.dtype.kind == "c" else 1
    a, b = _flat(a), _flat(b)
    pair = _Blocks(a.dtype, b.dtype)
    for start in range(0, a.size, BLOCK):
        pair.compare(a[start : start + BLOCK], b[start : start + BLOCK], start, found)
    found.first, found.last = found.first // width, found.last // width  # -1 stays -1
    found.numel = a.size // width
    return found


def unequal_rows(a: Array, b: Array) -> int:
    """Return how many rows, the first dimension, hold unequal elements."""
    rows = a.shape[0] if a.ndim else 1
    return int(np.count_nonzero((a.reshape(rows, -1) != b.reshape(rows, -1)).any(axis=1)))


def _flat(array: Array) -> Array:
    """Return an array with elements one after the other, in the machine's byte order."""
    array = np.ascontiguousarray(array).reshape(-1)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned:
        array = array.copy()
    if array.dtype.kind == "c":
        return array.view(np.float32 if array.itemsize == 8 else np.float64)
    return array.view(np.uint8) if array.dtype.kind == "b" else array


class _Blocks:
    """Compares blocks of two dtypes, in memory that is allocated once."""

    def __init__(self, a: np.dtype[Any], b: np.dtype[Any]) -> None:
        self.same = a == b
        exact = a.kind in "iu" and b.kind in "iu"
        low = {np.dtype(np.float32), *NARROW}
        small = all(d in low or (d.kind == "V" or d.itemsize < 2) for d in (a, b))
        self.dtype = np.dtype(np.float32 if small and not exact else np.float64)
        self.exact = exact
        self.wide = np.empty(BLOCK)
        self.delta, self.other = np.empty(BLOCK, self.dtype), np.empty(BLOCK, self.dtype)
        self.unequal = np.empty(BLOCK, bool)
        self.narrow = _narrower(a, b)
        self.calm = True
        self.tries = _tries(a, b)

    def compare(self, a: Array, b: Array, start: int, found: Difference) -> None:
        """Add one block.

        Bits are compared first as long as they are equal; where they are not, numbers are.
        """
        if self.same and self.calm and _same_bits(a, b):
            square = self._square(self._number(a))
            if math.isfinite(square):
                found.aa, found.bb = found.aa + square, found.bb + square
                self._round(a, b, found)
                return
        x, y = self._number(a), self._number(b)
        unequal = np.not_equal(*((a, b) if self.exact else (x, y)), out=self.unequal[: a.size])
        self.calm = not np.count_nonzero(unequal)
        aa, bb = self._square(x), self._square(y)
        found.bits_differ = found.bits_differ or not self.same or not _same_bits(a, b)
        if not math.isfinite(aa + bb):
            self._with_nonfinite(x, y, start, found)
        else:
            found.aa, found.bb = found.aa + aa, found.bb + bb
            if not self.calm:
                self._differ(x, y, unequal, start, found)
        self._round(a, b, found)

    def _number(self, array: Array) -> Array:
        return array if array.dtype == self.dtype else array.astype(self.dtype)

    def _square(self, array: Array) -> float:
        if array.dtype == np.float32 and not array.size % ROW:
            rows = array.reshape(-1, ROW)
            with np.errstate(over="ignore", invalid="ignore"):
                total = float(np.vecdot(rows, rows).sum(dtype=np.float64))
            if SMALLEST_SQUARE * array.size < total < LARGEST_SQUARE * ROW:
                return total
        wide = self.wide[: array.size]
        np.copyto(wide, array)
        return float(wide @ wide)

    def _differ(self, x: Array, y: Array, unequal: Array, start: int, found: Difference) -> None:
        delta = self.delta[: x.size]
        np.subtract(x, y, out=delta)
        np.abs(delta, out=delta)
        largest = float(delta.max())
        found.dd += self._square(delta)
        found.max_abs = max(found.max_abs, largest)
        found.max_rel = max(found.max_rel, self._relative(x, y, delta, largest, found.max_rel))
        found.unequal += int(np.count_nonzero(unequal))
        if self.narrow is not None:
            unequal &= self._rounded(x) != self._rounded(y)
        if beyond := int(np.count_nonzero(unequal)):
            found.beyond += beyond
            if found.first < 0:
                found.first = start + int(unequal.argmax())
            last = x.size - 1 if unequal[-1] else int(np.flatnonzero(unequal)[-1])
            found.last = start + last

    def _rounded(self, array: Array) -> Array:
        assert self.narrow is not None
        with np.errstate(over="ignore"):
            return array.astype(self.narrow).astype(self.dtype)

    def _relative(self, x: Array, y: Array, delta: Array, largest: float, known: float) -> float:
        """Return the largest relative difference, or 0 if it is below what is known.

        It can be above only where a magnitude is below `largest / known`: few places.
        """
        if known >= 2 or not largest:
            return 0.0
        magnitude = self.other[: x.size]
        np.abs(x, out=magnitude)
        if known:
            if magnitude.min() >= largest / known:
                return 0.0
            at = np.flatnonzero(magnitude < largest / known)
            if at.size * 8 < x.size:
                x, y, delta, magnitude = x[at], y[at], delta[at], magnitude[at]
        magnitude = np.maximum(magnitude, np.abs(y))
        with np.errstate(invalid="ignore"):
            return float(np.nanmax(delta / magnitude, initial=0.0))

    def _with_nonfinite(self, x: Array, y: Array, start: int, found: Difference) -> None:
        """Count NaN and infinities, and compare the rest."""
        nan_x, nan_y = np.isnan(x), np.isnan(y)
        found.nan_a += int(np.count_nonzero(nan_x))
        found.nan_b += int(np.count_nonzero(nan_y))
        found.inf_a += int(np.count_nonzero(np.isinf(x)))
        found.inf_b += int(np.count_nonzero(np.isinf(y)))
        unequal = (x != y) & ~(nan_x & nan_y)
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = np.where(finite, x, 0), np.where(finite, y, 0)
        found.aa, found.bb = found.aa + self._square(x), found.bb + self._square(y)
        if unequal.any():
            self._differ(x, y, unequal, start, found)

    def _round(self, a: Array, b: Array, found: Difference) -> None:
        """Drop the roundings that do not make one side of the other; most fall by the sample."""
        if not found.roundings:
            return
        for bit, (narrow, swapped) in self.tries.items():
            if found.roundings & bit:
                wide, target = (b, a) if swapped else (a, b)
                if not (
                    _rounds(wide[:SAMPLE], target[:SAMPLE], narrow)
                    and _rounds(wide, target, narrow)
                ):
                    found.roundings &= ~bit
        found.roundings &= sum(self.tries)


def _tries(a: np.dtype[Any], b: np.dtype[Any]) -> dict[int, tuple[np.dtype[Any], bool]]:
    """Return rounding bit -> (to which dtype, whether it is b that is rounded)."""
    tries: dict[int, tuple[np.dtype[Any], bool]] = {}
    bits = {
        A_TO_BF16: (0, False),
        A_TO_FP16: (1, False),
        B_TO_BF16: (0, True),
        B_TO_FP16: (1, True),
    }
    wide = [d in (np.dtype(np.float32), np.dtype(np.float64)) for d in (a, b)]
    if all(wide):
        tries |= {bit: (NARROW[n], swapped) for bit, (n, swapped) in bits.items()}
    return tries


def _narrower(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the float dtype of lower precision; None if both are one, or no floats."""
    if a == b or not all(d.kind in "fV" for d in (a, b)):
        return None
    return min(a, b, key=lambda d: int(ml_dtypes.finfo(d).nmant))  # type: ignore[no-untyped-call]


def _rounds(wide: Array, target: Array, narrow: np.dtype[Any]) -> bool:
    """Tell whether a side, rounded to nearest even, is the other."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _same_bits(wide.astype(narrow).astype(target.dtype), target)


def _same_bits(a: Array, b: Array) -> bool:
    kind = np.dtype(f"u{a.dtype.itemsize}")
    return bool(np.array_equal(a.view(kind), b.view(kind)))
