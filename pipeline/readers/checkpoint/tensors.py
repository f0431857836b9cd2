"""Logical tensors as boxes of what lies in files; cut, joined and turned without reading a value.

A checkpoint's tensor may lie in many files: one part a rank, transposed, inside a flat buffer. Here
it is a list of boxes; each says which box of the tensor is which box of which array in which file.
Every layout rule (merging ranks, taking q out of qkv, stacking experts) makes new boxes of old
ones, so a whole model is rearranged in no time, and only what is compared is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

Shape = tuple[int, ...]

NO_AXIS = -1
"""In `Box.axes`: this dimension of the tensor has extent 1 and is no dimension of the source."""


class Source(Protocol):
    """An array that boxes are cut of: in a file, or another tensor."""

    @property
    def shape(self) -> Shape:
        """Return its shape."""


@dataclass(frozen=True)
class Box:
    """A part of a tensor, and where it is found.

    Args:
        start: where it begins in the tensor, per dimension.
        shape: its extent in the tensor.
        source: the array it is part of.
        at: where it begins in the source, per dimension of the source.
        axes: for each dimension of the tensor, that of the source which it is; or `NO_AXIS`.
            Other dimensions of the source have extent 1 here.
    """

    start: Shape
    shape: Shape
    source: Source
    at: Shape
    axes: Shape


@dataclass(frozen=True)
class Tensor:
    """A tensor that has not been read.

    Args:
        shape: of the whole.
        dtype: in the short form, `bfloat16`.
        boxes: what it is made of; they do not overlap.
    """

    shape: Shape
    dtype: str
    boxes: tuple[Box, ...]

    @property
    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def whole(self) -> bool:
        """Tell whether there is a box for every element."""
        return sum(math.prod(box.shape) for box in self.boxes) == self.numel


def whole(source: Source, dtype: str) -> Tensor:
    """Return all of an array as a tensor."""
    zeros, axes = (0,) * len(source.shape), tuple(range(len(source.shape)))
    return Tensor(source.shape, dtype, (Box(zeros, source.shape, source, zeros, axes),))


def placed(shape: Shape, parts: Iterable[tuple[Shape, Tensor]]) -> Tensor:
    """Return a tensor made of others, each at its own start."""
    boxes, dtypes = [], []
    for start, part in parts:
        dtypes.append(part.dtype)
        boxes += [replace(b, start=_add(b.start, start)) for b in part.boxes]
    return Tensor(shape, dtypes[0] if dtypes else "", tuple(boxes))


def joined(parts: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors one after the other along a dimension."""
    if len(parts) == 1:
        return parts[0]
    starts, end = [], 0
    for part in parts:
        starts.append(tuple(end if d == dim else 0 for d in range(len(part.shape))))
        end += part.shape[dim]
    shape = tuple(end if d == dim else n for d, n in enumerate(parts[0].shape))
    return placed(shape, zip(starts, parts, strict=True))


def cut(tensor: Tensor, start: int, stop: int, dim: int = 0) -> Tensor:
    """Return a range along one dimension."""
    at = tuple(start if d == dim else 0 for d in range(len(tensor.shape)))
    shape = tuple(stop - start if d == dim else n for d, n in enumerate(tensor.shape))
    return region(tensor, at, shape)


def region(tensor: Tensor, start: Shape, shape: Shape) -> Tensor:
    """Return a box of a tensor."""
    return _view(tensor, start, shape, tuple(range(len(shape))))


def selected(tensor: Tensor, index: int) -> Tensor:
    """Return one element of the first dimension, without that dimension."""
    rest = tensor.shape[1:]
    return _view(tensor, (index, *(0 for _ in rest)), rest, tuple(range(1, len(tensor.shape))))


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """Return tensors of one shape along a new first dimension."""
    one = (1, *parts[0].shape)
    axes = (NO_AXIS, *range(len(parts[0].shape)))
    layers = [_view(part, (0,) * len(part.shape), one, axes) for part in parts]
    return joined(layers)


def transposed(tensor: Tensor) -> Tensor:
    """Return a tensor with its last two dimensions exchanged."""
    axes = [*range(len(tensor.shape))]
    axes[-2:] = axes[-1], axes[-2]
    shape = tuple(tensor.shape[axis] for axis in axes)
    return _view(tensor, (0,) * len(shape), shape, tuple(axes))


def inverse(shape: Shape, dtype: str, parts: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the tensor that was taken apart, with other values.

    Args:
        shape: of the tensor.
        dtype: of the other values.
        parts: each part of the tensor, cut of `whole(it)`, and what to put in its place.
    """
    boxes: list[Box] = []
    for part, other in parts:
        for box in part.boxes:
            dims = {axis: dim for dim, axis in enumerate(box.axes) if axis != NO_AXIS}
            back = tuple(dims.get(axis, NO_AXIS) for axis in range(len(shape)))
            extent = tuple(1 if dim == NO_AXIS else box.shape[dim] for dim in back)
            boxes += resolved(Box(box.at, extent, other, box.start, back))
    return Tensor(shape, dtype, tuple(boxes))


def resolved(box: Box) -> Iterator[Box]:
    """Yield a box of a tensor as boxes of what that tensor is made of."""
    tensor = box.source
    assert isinstance(tensor, Tensor)
    extent = [1] * len(tensor.shape)
    for dim, axis in enumerate(box.axes):
        if axis != NO_AXIS:
            extent[axis] = box.shape[dim]
    for leaf in tensor.boxes:
        low = [max(a, s) for a, s in zip(box.at, leaf.start, strict=True)]
        high = [
            min(a + e, s + n)
            for a, e, s, n in zip(box.at, extent, leaf.start, leaf.shape, strict=True)
        ]
        if any(lo >= hi for lo, hi in zip(low, high, strict=True)):
            continue
        yield _clipped(box, leaf, low, high)


def _clipped(box: Box, leaf: Box, low: Sequence[int], high: Sequence[int]) -> Box:
    """Return the part of `box` that `leaf` holds; low and high are in the tensor between them."""
    at = list(leaf.at)
    for dim, axis in enumerate(leaf.axes):
        if axis != NO_AXIS:
            at[axis] += low[dim] - leaf.start[dim]
    start, shape, axes = list(box.start), [1] * len(box.start), [NO_AXIS] * len(box.start)
    for dim, axis in enumerate(box.axes):
        if axis != NO_AXIS:
            start[dim] += low[axis] - box.at[axis]
            shape[dim] = high[axis] - low[axis]
            axes[dim] = leaf.axes[axis]
    return Box(tuple(start), tuple(shape), leaf.source, tuple(at), tuple(axes))


def _view(tensor: Tensor, at: Shape, shape: Shape, axes: Shape) -> Tensor:
    box = Box((0,) * len(shape), shape, tensor, at, axes)
    return Tensor(shape, tensor.dtype, tuple(resolved(box)))


def _add(a: Shape, b: Shape) -> Shape:
    return tuple(x + y for x, y in zip(a, b, strict=True))
