"""Compares the values of two arrays, block by block, with sums in float64.

A block is small enough that all the work on it is done in the processor's cache. Differences and
ratios are float32 where that holds all values of both sides, else float64. Large arrays go through
a compiled loop, `difference_fused`, which finds the same; what is not finite is always done here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 1 << 16
"""Elements at a time; some arrays of this size fit into a core's cache."""
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

    def add(self, part: Difference) -> None:
        """Add what was found in the elements that follow, all of them finite."""
        self.unequal, self.beyond = self.unequal + part.unequal, self.beyond + part.beyond
        self.bits_differ = self.bits_differ or part.bits_differ
        self.aa, self.bb, self.dd = self.aa + part.aa, self.bb + part.bb, self.dd + part.dd
        self.max_abs = max(self.max_abs, part.max_abs)
        self.max_rel = max(self.max_rel, part.max_rel)
        self.first = part.first if self.first < 0 else self.first
        self.last = part.last if part.last >= 0 else self.last

    def row(self) -> tuple[Any, ...]:
        """Return the values, in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


def difference(a: Array, b: Array, *, fused: bool = False) -> Difference:
    """Return how two arrays of one shape differ; their dtypes may too.

    Args:
        a, b: the arrays.
        fused: use the compiled loop, where there is one for their dtypes.
    """
    found, width = Difference(), 2 if a.dtype.kind == "c" else 1
    a, b = _flat(a), _flat(b)
    pair, start = _Pair(a.dtype, b.dtype), 0
    while start < a.size:
        if fused:
            start = pair.scan(a, b, start, found)
        pair.compare(a[start : start + BLOCK], b[start : start + BLOCK], start, found)
        start += BLOCK
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


class _Pair:
    """Compares arrays of two dtypes."""

    def __init__(self, a: np.dtype[Any], b: np.dtype[Any]) -> None:
        self.same = a == b
        self.exact = a.kind in "iu" and b.kind in "iu"
        low = {np.dtype(np.float32), *NARROW}
        small = all(d in low or d.kind == "V" or d.itemsize < 2 for d in (a, b))
        self.dtype = np.dtype(np.float32 if small else np.float64)
        self.narrow = _narrower(a, b)
        self.tries = _tries(a, b)

    def scan(self, a: Array, b: Array, start: int, found: Difference) -> int:
        """Add what the compiled loop finds; return where it stopped."""
        from . import difference_fused

        if not difference_fused.covers(a.dtype, b.dtype):
            return start
        stop, *values = difference_fused.scan(a, b, start)
        found.add(Difference(stop - start, *values))
        rounds = difference_fused.rounds if self.dtype == np.float32 else _rounds
        self._round(a[start:stop], b[start:stop], found, rounds)
        return int(stop)

    def compare(self, a: Array, b: Array, start: int, found: Difference) -> None:
        """Add one block."""
        same_bits = self.same and _same_bits(a, b)
        found.bits_differ = found.bits_differ or not same_bits
        x, y = a.astype(self.dtype, copy=False), b.astype(self.dtype, copy=False)
        aa = _square(x)
        bb = aa if same_bits else _square(y)
        if not math.isfinite(aa + bb):
            self._with_nonfinite(x, y, start, found)
        else:
            found.aa, found.bb = found.aa + aa, found.bb + bb
            if not same_bits:
                self._count(x, y, a != b if self.exact else x != y, start, found)
                _measure(x, y, found)
        self._round(a, b, found, _rounds)

    def _count(self, x: Array, y: Array, unequal: Array, start: int, found: Difference) -> None:
        """Count elements that differ, and those that do so when rounded alike."""
        found.unequal += int(np.count_nonzero(unequal))
        if self.narrow is not None:
            unequal &= self._rounded(x) != self._rounded(y)
        if beyond := int(np.count_nonzero(unequal)):
            found.beyond += beyond
            found.first = start + int(unequal.argmax()) if found.first < 0 else found.first
            last = unequal.size - 1 if unequal[-1] else int(np.flatnonzero(unequal)[-1])
            found.last = start + last

    def _rounded(self, array: Array) -> Array:
        assert self.narrow is not None
        with np.errstate(over="ignore"):
            return array.astype(self.narrow).astype(self.dtype)

    def _with_nonfinite(self, x: Array, y: Array, start: int, found: Difference) -> None:
        """Count NaN and infinities, and compare the rest."""
        nan_x, nan_y = np.isnan(x), np.isnan(y)
        found.nan_a += int(np.count_nonzero(nan_x))
        found.nan_b += int(np.count_nonzero(nan_y))
        found.inf_a += int(np.count_nonzero(np.isinf(x)))
        found.inf_b += int(np.count_nonzero(np.isinf(y)))
        self._count(x, y, (x != y) & ~(nan_x & nan_y), start, found)
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = np.where(finite, x, 0), np.where(finite, y, 0)
        found.aa, found.bb = found.aa + _square(x), found.bb + _square(y)
        _measure(x, y, found)

    def _round(
        self,
        a: Array,
        b: Array,
        found: Difference,
        rounds: Callable[[Array, Array, np.dtype[Any]], bool],
    ) -> None:
        """Drop the roundings that do not make one side of the other; a few elements tell most."""
        for bit, (narrow, swapped) in self.tries.items():
            wide, target = (b, a) if swapped else (a, b)
            if found.roundings & bit and not (
                _rounds(wide[:SAMPLE], target[:SAMPLE], narrow) and rounds(wide, target, narrow)
            ):
                found.roundings &= ~bit
        if a.size:
            found.roundings &= sum(self.tries)


def _square(array: Array) -> float:
    wide = array.astype(np.float64, copy=False)
    return float(wide @ wide)


def _measure(x: Array, y: Array, found: Difference) -> None:
    """Add by how much finite numbers differ."""
    found.dd += _square(x.astype(np.float64, copy=False) - y.astype(np.float64, copy=False))
    largest, ratio = _largest(x, y)
    found.max_abs, found.max_rel = max(found.max_abs, largest), max(found.max_rel, ratio)


def _largest(x: Array, y: Array) -> tuple[float, float]:
    """Return the largest difference, and the largest relative to the larger magnitude."""
    with np.errstate(invalid="ignore", over="ignore"):
        delta = np.abs(x - y)
        largest = float(delta.max(initial=0))
        if x.dtype == np.float32 and not math.isfinite(largest):
            return _largest(x.astype(np.float64), y.astype(np.float64))
        ratios = delta / np.maximum(np.abs(x), np.abs(y))
    return largest, float(np.fmax.reduce(ratios, initial=0))  # of two zeros it is NaN


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
