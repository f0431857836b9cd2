"""b - a of two arrays of numbers, and which of them count: what several questions need.

Passes over all of the data are what takes time, so each is made once, into memory that is used
again: fresh memory costs as much as the pass itself.
"""

from __future__ import annotations

import math
import threading
from functools import cached_property
from typing import Any

import numpy as np

from .rl_layout import Array, count, same_bytes

KEPT_BYTES = 32 * 2**20
"""Results larger than this get memory of their own, which is given back."""


class _Memory(threading.local):
    """Memory for passing results, a piece a name and thread."""

    def __init__(self) -> None:
        self._pieces: dict[str, Array] = {}
        self._last: dict[str, Array] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an array whose content is whatever; it is the next caller's of this name."""
        last = self._last.get(name)
        if last is not None and last.shape == shape and last.dtype == dtype:
            return last
        size = math.prod(shape) * dtype.itemsize
        if size > KEPT_BYTES:
            return np.empty(shape, dtype)
        piece = self._pieces.get(name)
        if piece is None or len(piece) < size:
            piece = self._pieces[name] = np.empty(size, np.uint8)
        self._last[name] = piece[:size].view(dtype).reshape(shape)
        return self._last[name]


_MEMORY = _Memory()


def like(name: str, array: Array, dtype: Any = None) -> Array:
    """Return memory of an array's shape, for a result that is used before the next of its name."""
    return _MEMORY.take(name, array.shape, array.dtype if dtype is None else np.dtype(dtype))


class Gap:
    """b - a, element by element, of two arrays of numbers of one shape.

    What it gives lies in memory of the thread: only its last one may be asked.

    Args:
        a: one side.
        b: the other.
    """

    def __init__(self, a: Array, b: Array) -> None:
        self.same = same_bytes(a, b)
        self._given = a, b

    @cached_property
    def _floats(self) -> tuple[Array, Array]:
        """Return numbers in a float type that both fit in; token ids and masks in float64."""
        x, y = self._given
        if x.dtype.kind == "f" and x.dtype == y.dtype and x.itemsize >= 4:
            return x, y
        return x.astype(np.float64), y.astype(np.float64)

    @property
    def a(self) -> Array:
        """Return one side."""
        return self._floats[0]

    @property
    def b(self) -> Array:
        """Return the other side."""
        return self._floats[1]

    @cached_property
    def gap(self) -> Array:
        """Return b - a."""
        with np.errstate(invalid="ignore", over="ignore"):
            gap: Array = np.subtract(self.b, self.a, out=like("gap", self.a))
        return gap

    @cached_property
    def size(self) -> Array:
        """Return the absolute difference."""
        size: Array = np.abs(self.gap, out=like("size", self.gap))
        return size

    @cached_property
    def max(self) -> float:
        """Return the largest difference; not finite where any number, or difference, is not."""
        if self.same:
            given = self._given[0]
            with np.errstate(invalid="ignore", over="ignore"):
                exact = given.dtype.kind in "biu" or np.isfinite(given.sum())
            return 0.0 if exact or np.isfinite(given).all() else np.nan
        return float(self.size.max(initial=0))

    @cached_property
    def differs(self) -> Array:
        """Return where they are not equal; what is not finite is not looked at."""
        differs: Array = np.not_equal(self.size, 0, out=like("differs", self.size, bool))
        return differs

    @cached_property
    def largest(self) -> Array:
        """Return the larger of both, without sign."""
        largest, other = (
            np.abs(side, out=like(name, side))
            for name, side in (("largest", self.a), ("other", self.b))
        )
        return np.maximum(largest, other, out=largest)

    @cached_property
    def whole(self) -> bool:
        """Tell whether both are whole numbers, which no rounding to bfloat16 has moved.

        Those of a float type, as msprobe writes all, are if they are small, or too fine for it.
        """
        if all(side.dtype.kind in "biu" for side in self._given):
            return True
        if not all(np.array_equal(side, np.rint(side)) for side in (self.a, self.b)):
            return False
        fine = self.largest.astype(np.float32).view(np.uint32) & 0xFFFF
        return bool(self.largest.max(initial=0) <= 256 or fine.any())

    @property
    def relative(self) -> Array:
        """Return the difference in parts of the larger of both; NaN where both are 0."""
        with np.errstate(invalid="ignore"):
            relative: Array = np.divide(self.size, self.largest, out=like("other", self.size))
        return relative


class Counting:
    """Which numbers count.

    Args:
        mask: [m, width].
    """

    def __init__(self, mask: Array) -> None:
        self.mask = mask

    @cached_property
    def n(self) -> Array:
        """Return how many of each row count, [m]."""
        return count(self.mask)

    @cached_property
    def factors(self) -> Array:
        """Return 1 where a number counts, else 0, [m, width]."""
        return self.mask.astype(np.float32)
