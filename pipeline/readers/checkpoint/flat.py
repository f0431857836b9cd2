"""Tensors that lie in flat buffers, across their borders: ZeRO partitions, split parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ..dtypes import dtype_of
from .files import InFile
from .tensors import Box, Shape, Tensor


def shaped(flat: Tensor, shape: Shape) -> Tensor:
    """Return a tensor of one dimension in another shape of as many elements.

    A run of a flat buffer is a box only where it holds whole rows; the rest of the first and last
    row become boxes of their own.
    """
    boxes: list[Box] = []
    for box in flat.boxes:
        source = box.source
        assert isinstance(source, InFile)
        assert source.strides is None
        size = dtype_of(source.dtype).itemsize
        first, at = box.start[0], box.at[0] if box.axes != (-1,) else 0
        for start, extent in _runs(first, first + box.shape[0], shape):
            offset = source.offset + (at + _place(start, shape) - first) * size
            zeros, axes = (0,) * len(shape), tuple(range(len(shape)))
            boxes.append(
                Box(start, extent, replace(source, offset=offset, shape=extent), zeros, axes)
            )
    return Tensor(shape, flat.dtype, tuple(boxes))


def _runs(first: int, last: int, shape: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Yield (start, extent) of boxes that make up the elements from `first` up to `last`."""
    if first >= last:
        return
    if not shape:
        yield (), ()
        return
    row = math.prod(shape[1:])
    low, high = -(-first // row), last // row
    if low > high:  # within one row
        yield from _within(first, last, shape, row)
        return
    yield from _within(first, low * row, shape, row)
    if high > low:
        yield (low, *(0 for _ in shape[1:])), (high - low, *shape[1:])
    yield from _within(high * row, last, shape, row)


def _within(first: int, last: int, shape: Shape, row: int) -> Iterator[tuple[Shape, Shape]]:
    """Yield the boxes of a part of one row."""
    index = first // row
    for start, extent in _runs(first - index * row, last - index * row, shape[1:]):
        yield (index, *start), (1, *extent)


def _place(start: Shape, shape: Shape) -> int:
    place = 0
    for s, n in zip(start, shape, strict=True):
        place = place * n + s
    return place
