"""Reads boxes of tensors into memory; without a copy where they lie in one piece."""

from __future__ import annotations

import math

import numpy as np

from ..dtypes import Array, dtype_of
from ..errors import ReadError
from .files import Files
from .tensors import NO_AXIS, Box, Shape, Tensor, resolved


def read(
    tensor: Tensor, files: Files, start: Shape | None = None, shape: Shape | None = None
) -> Array:
    """Return a box of a tensor; all of it by default.

    Raises:
        ReadError: a part of the box is in no file.
    """
    zeros, axes = (0,) * len(tensor.shape), tuple(range(len(tensor.shape)))
    shape = tensor.shape if shape is None else shape
    boxes = list(resolved(Box(zeros, shape, tensor, start or zeros, axes)))
    if len(boxes) == 1 and boxes[0].shape == shape:
        return _part(boxes[0], files)
    if sum(math.prod(box.shape) for box in boxes) != math.prod(shape):
        raise ReadError("a part of the tensor is missing")
    whole = np.empty(shape, dtype_of(tensor.dtype))
    for box in boxes:
        where = tuple(slice(s, s + n) for s, n in zip(box.start, box.shape, strict=True))
        whole[where] = _part(box, files)
    return whole


def _part(box: Box, files: Files) -> Array:
    source = box.source
    found: Array = source.open(files)  # type: ignore[attr-defined]
    place: list[int | slice] = list(box.at)
    for dim, axis in enumerate(box.axes):
        if axis != NO_AXIS:
            place[axis] = slice(box.at[axis], box.at[axis] + box.shape[dim])
    found = found[tuple(place)]
    kept = sorted(axis for axis in box.axes if axis != NO_AXIS)
    order = [kept.index(axis) for axis in box.axes if axis != NO_AXIS]
    return found.transpose(order).reshape(box.shape) if box.axes else found.reshape(())
