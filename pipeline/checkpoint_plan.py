"""Cuts the pairs of two checkpoints into tasks of even bytes, and does one task in a worker."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .readers.checkpoint.files import Files
from .readers.checkpoint.matching import Pair
from .readers.checkpoint.reading import read
from .readers.checkpoint.tensors import Shape, Tensor, region
from .readers.dtypes import dtype_of
from .readers.errors import ReadError

CHUNK = 1 << 22
"""Elements that are in memory at a time, where they do not lie in one piece."""

TASK_BYTES = 64 * 2**20
SMALLEST_TASK = 2**20
FULL = 0.8
"""Share of the bytes of a task from which on it gets no more pieces."""
PER_WORKER = 8
"""Tasks for each worker at least, so that all end at about the same time."""

COMPILED_FROM = 2**28
"""Elements of one pair of dtypes from which on loading the compiled loop, or making it, pays."""

PIECES = {
    "pair": "BIGINT", "numel": "BIGINT", "unequal": "BIGINT", "beyond": "BIGINT",
    "bits_differ": "BOOLEAN", "aa": "DOUBLE", "bb": "DOUBLE", "dd": "DOUBLE",
    "max_abs": "DOUBLE", "max_rel": "DOUBLE",
    "first_place": "BIGINT", "last_place": "BIGINT", "nan_a": "BIGINT", "nan_b": "BIGINT",
    "inf_a": "BIGINT", "inf_b": "BIGINT", "roundings": "BIGINT", "unequal_rows": "BIGINT",
    "error": "VARCHAR",
}  # fmt: skip
"""Column -> type of what a task gives for each piece."""


@dataclass(frozen=True)
class Piece:
    """A box of a pair of tensors.

    Args:
        pair: number of the pair.
        a, b: the box on both sides.
        start: of the box in the tensor.
        whole: shape of the tensor.
        rows: count the rows that differ.
        fused: compare with the compiled loop.
    """

    pair: int
    a: Tensor
    b: Tensor
    start: Shape
    whole: Shape
    rows: bool
    fused: bool


@dataclass(frozen=True)
class Task:
    """Pieces of about as many bytes as those of any other task."""

    number: int
    pieces: tuple[Piece, ...]
    bytes: int

    def __str__(self) -> str:
        return f"{self.number}: {len(self.pieces)} pieces, {self.bytes / 2**20:.0f} MiB"


def tasks(pairs: Sequence[Pair], workers: int) -> list[Task]:
    """Return the tasks of all pairs, in their order."""
    total = sum(_bytes(pair.a) + _bytes(pair.b) for pair in pairs)
    most = max(SMALLEST_TASK, min(TASK_BYTES, total // (workers * PER_WORKER)))
    found: list[Task] = []
    waiting: list[Piece] = []
    size = 0
    for piece in _pieces(pairs, most):
        waiting.append(piece)
        size += _bytes(piece.a) + _bytes(piece.b)
        if size >= FULL * most:
            found.append(Task(len(found), tuple(waiting), size))
            waiting, size = [], 0
    if waiting:
        found.append(Task(len(found), tuple(waiting), size))
    return found


def compiled(pairs: Iterable[Pair]) -> set[tuple[str, str]]:
    """Return the dtypes, of A and B, of which there is enough for the compiled loop."""
    elements: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        elements[pair.a.dtype, pair.b.dtype] += pair.a.numel
    return {dtypes for dtypes, number in elements.items() if number >= COMPILED_FROM}


def load(dtypes: Iterable[tuple[str, str]]) -> None:
    """Load the compiled loops, or make them; runs on every node."""
    from .difference import difference

    for a, b in dtypes:
        difference(np.full(1, np.pi, dtype_of(a)), np.full(1, np.pi, dtype_of(b)), fused=True)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel * dtype_of(tensor.dtype).itemsize


def _pieces(pairs: Sequence[Pair], most: int) -> Iterator[Piece]:
    many = compiled(pairs)
    for number, pair in enumerate(pairs):
        fused = (pair.a.dtype, pair.b.dtype) in many
        each = (_bytes(pair.a) + _bytes(pair.b)) // max(1, pair.a.numel)
        for start, shape in _boxes(pair.a.shape, min(CHUNK, max(1, most // max(1, each)))):
            a, b = region(pair.a, start, shape), region(pair.b, start, shape)
            yield Piece(number, a, b, start, pair.a.shape, bool(pair.padded), fused)


def _boxes(shape: Shape, most: int) -> Iterator[tuple[Shape, Shape]]:
    """Yield (start, shape) of boxes of at most `most` elements, in order of the flat tensor."""
    if math.prod(shape) <= most:
        yield (0,) * len(shape), shape
        return
    inner = math.prod(shape[1:])
    step = max(1, most // inner)
    for first in range(0, shape[0], step):
        rows = min(step, shape[0] - first)
        if inner <= most:
            yield (first, *(0 for _ in shape[1:])), (rows, *shape[1:])
        else:
            for start, extent in _boxes(shape[1:], most):
                yield (first, *start), (1, *extent)


def compare(task: Task) -> list[tuple[Any, ...]]:
    """Return a row of `PIECES` for each piece of a task; runs in a worker."""
    with Files() as files:
        return [_compared(piece, files) for piece in task.pieces]


def _compared(piece: Piece, files: Files) -> tuple[Any, ...]:
    from .difference import difference, unequal_rows

    try:
        a, b = read(piece.a, files), read(piece.b, files)
    except ReadError as error:
        return (piece.pair, *[None] * (len(PIECES) - 2), str(error))
    found = difference(a, b, fused=piece.fused)
    rows = unequal_rows(a, b) if piece.rows and found.unequal else 0
    place = {place: _place(piece, place) for place in (found.first, found.last)}
    row = (piece.pair, *found.row(), rows, None)
    names = list(PIECES)
    values = dict(zip(names, row, strict=True))
    values |= {"first_place": place[found.first], "last_place": place[found.last]}
    return tuple(values.values())


def _place(piece: Piece, inside: int) -> int | None:
    """Return the place in the flat tensor of a place in the flat box."""
    if inside < 0:
        return None
    index = []
    for extent in reversed(piece.a.shape):
        inside, rest = divmod(inside, extent)
        index.append(rest)
    flat = 0
    for start, at, extent in zip(piece.start, reversed(index), piece.whole, strict=True):
        flat = flat * extent + start + at
    return flat


def size_of(pairs: Iterable[Pair]) -> int:
    """Return the bytes that comparing pairs reads."""
    return sum(_bytes(pair.a) + _bytes(pair.b) for pair in pairs)
