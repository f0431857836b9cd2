"""Explains a difference: transposed, scaled, sign flipped, rows permuted, one layer off.

Each guess is held against a few elements first and then against all, until one does not fit; so a
wrong guess costs next to nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .checkpoint_plan import CHUNK
from .readers.checkpoint.files import Files
from .readers.checkpoint.reading import read
from .readers.checkpoint.tensors import Shape, Tensor, cut, joined, region, transposed
from .readers.dtypes import Array
from .readers.errors import ReadError

TOLERANCE = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
"""Relative error of one rounding to a dtype; of float32 and float64 it is 1e-6."""

MOST_ROWS = 1 << 20
COUNTED = 1 << 26


@dataclass(frozen=True)
class Suspect:
    """A pair that differs.

    Args:
        pair: its number.
        a, b: the tensors.
        scale: by which b is nearest to a.
        neighbours: (words, tensor of B) of the layers before and after.
    """

    pair: int
    a: Tensor
    b: Tensor
    scale: float | None = None
    neighbours: tuple[tuple[str, Tensor], ...] = ()

    def __str__(self) -> str:
        return f"pair {self.pair}"


def hint(suspect: Suspect) -> str:
    """Return what explains the difference of a pair, or nothing; runs in a worker."""
    with Files() as files:
        try:
            return next(_explanations(suspect, files), "")
        except ReadError:
            return ""


def histogram(suspect: Suspect) -> list[tuple[int | None, int]]:
    """Return (power of two, elements) of the absolute differences of a pair; None: equal.

    A large tensor is looked at up to `COUNTED` elements.
    """
    counts = np.zeros(256, np.int64)
    left = COUNTED
    with Files() as files:
        for box in _growing(suspect.a.shape):
            a, b = (read(region(t, *box), files).astype(np.float32) for t in (suspect.a, suspect.b))
            with np.errstate(invalid="ignore", over="ignore"):
                delta = np.abs(a - b)
            exponents = np.ascontiguousarray(delta).view(np.uint32) >> 23
            counts += np.bincount(exponents.reshape(-1), minlength=256)[:256]
            left -= delta.size
            if left <= 0:
                break
    found: list[tuple[int | None, int]] = [(None, int(counts[0]))] if counts[0] else []
    return found + [(int(n) - 127, int(counts[n])) for n in np.flatnonzero(counts[1:255]) + 1]


def _explanations(suspect: Suspect, files: Files) -> Iterator[str]:
    a, b, scale = suspect.a, suspect.b, suspect.scale
    if a.shape == b.shape:
        rounding = max(TOLERANCE.get(tensor.dtype, 1e-5) for tensor in (a, b))
        known = scale is not None and a.numel > 1 and abs(scale) > 1e-6
        if scale is not None and known and abs(scale - 1) > rounding and _fits(a, b, files, scale):
            yield "the sign is flipped" if abs(scale + 1) < 1e-6 else f"scaled by {scale:.6g}"
        yield from (
            f"equal to the tensor of the {words}: layers are shifted by one"
            for words, other in suspect.neighbours
            if other.shape == a.shape and _fits(a, other, files)
        )
    if len(a.shape) >= 2 and len(b.shape) == len(a.shape):
        turned = transposed(b)
        if turned.shape == a.shape and _fits(a, turned, files):
            yield "equal to the transpose"
    if a.shape == b.shape and len(a.shape) >= 2:
        if (halves := _halves_swapped(b)) and _fits(a, halves, files):
            yield "the upper and the lower half are exchanged"
        elif _may_be_permuted(a, b, files) and _rows(a, files) == _rows(b, files):
            yield "the same rows in another order"
    small = a.numel == b.numel and a.numel <= 4 * CHUNK
    if a.shape != b.shape and small and _same_flat(a, b, files):
        yield "the same elements in the same order, in another shape"


def _fits(a: Tensor, b: Tensor, files: Files, scale: float | None = None) -> bool:
    """Tell whether b is a, or a times a number; up to rounding if it is."""
    return all(
        _same(read(region(a, *box), files), read(region(b, *box), files), scale)
        for box in _growing(a.shape)
    )


def _same_flat(a: Tensor, b: Tensor, files: Files) -> bool:
    return _same(read(a, files).reshape(-1), read(b, files).reshape(-1), None)


def _growing(shape: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Yield boxes of whole rows, the first of them small."""
    if not shape:
        yield (), ()
        return
    inner = math.prod(shape[1:])
    first, step = 0, max(1, 4096 // max(1, inner))
    while first < shape[0]:
        rows = min(step, shape[0] - first)
        yield (first, *(0 for _ in shape[1:])), (rows, *shape[1:])
        first, step = first + rows, max(1, CHUNK // max(1, inner))


def _same(a: Array, b: Array, scale: float | None) -> bool:
    if scale is None:
        same = a == b
        return bool(np.all(same | ((a != a) & (b != b))))
    error = max(TOLERANCE.get(str(array.dtype), 1e-6) for array in (a, b))
    wide = a.astype(np.float64) * scale
    with np.errstate(invalid="ignore"):
        return bool(np.allclose(wide, b.astype(np.float64), rtol=error, atol=1e-30))


def _halves_swapped(tensor: Tensor) -> Tensor | None:
    rows = tensor.shape[0]
    if rows % 2 or not rows:
        return None
    return joined([cut(tensor, rows // 2, rows), cut(tensor, 0, rows // 2)])


def _may_be_permuted(a: Tensor, b: Tensor, files: Files) -> bool:
    """Tell whether a few rows of a begin like some row of b; reads one column of b."""
    if not 1 < a.shape[0] <= MOST_ROWS or not a.numel:
        return False
    corner = (0,) * len(a.shape)
    column = read(region(b, corner, (b.shape[0], *(1 for _ in b.shape[1:]))), files)
    rows = min(16, a.shape[0])
    first = read(region(a, corner, (rows, *(1 for _ in a.shape[1:]))), files)
    return bool(np.isin(first, column).all())


def _rows(tensor: Tensor, files: Files) -> list[bytes]:
    """Return a hash of each row, sorted."""
    found = []
    for box in _growing(tensor.shape):
        rows = np.ascontiguousarray(read(region(tensor, *box), files))
        found += [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    return sorted(found)
