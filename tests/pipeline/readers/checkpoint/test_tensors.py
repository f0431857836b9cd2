"""Boxes of boxes: every way to cut and join tensors, held against numpy doing the same."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pipeline.readers.checkpoint.files import Files, InFile
from pipeline.readers.checkpoint.flat import shaped
from pipeline.readers.checkpoint.reading import read
from pipeline.readers.checkpoint.tensors import (
    Tensor,
    cut,
    inverse,
    joined,
    placed,
    region,
    selected,
    stacked,
    transposed,
    whole,
)
from pipeline.readers.errors import ReadError


def made(*shape: int) -> tuple[Tensor, np.ndarray]:
    values = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    return whole(InFile(values.tobytes(), 0, "int32", shape), "int32"), values


def same(tensor: Tensor, values: np.ndarray) -> None:
    assert tensor.shape == values.shape
    assert tensor.whole
    with Files() as files:
        np.testing.assert_array_equal(read(tensor, files), values)
        if values.size:
            start = tuple(n // 3 for n in values.shape)
            shape = tuple(n - n // 3 for n in values.shape)
            where = tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True))
            np.testing.assert_array_equal(read(tensor, files, start, shape), values[where])


def step(rng: random.Random, tensor: Tensor, values: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """Return a tensor after one random operation, and numpy's."""
    dims = values.ndim
    kind = rng.choice(["cut", "join", "stack", "select", "turn", "cut", "join"])
    if kind == "cut" and dims:
        dim = rng.randrange(dims)
        low, high = sorted((rng.randint(0, values.shape[dim]), rng.randint(0, values.shape[dim])))
        return cut(tensor, low, high, dim), values.take(range(low, high), dim)
    if kind == "join" and dims and values.size < 5000:
        dim = rng.randrange(dims)
        middle = values.shape[dim] // 2
        parts = [cut(tensor, middle, values.shape[dim], dim), tensor, cut(tensor, 0, middle, dim)]
        turned = np.split(values, [middle], dim)
        return joined(parts, dim), np.concatenate([turned[1], values, turned[0]], dim)
    if kind == "stack" and dims < 4 and values.size < 5000:
        return stacked([tensor, tensor]), np.stack([values, values])
    if kind == "select" and dims > 1 and values.shape[0]:
        index = rng.randrange(values.shape[0])
        return selected(tensor, index), values[index]
    if kind == "turn" and dims > 1:
        return transposed(tensor), np.swapaxes(values, -1, -2)
    return tensor, values


@pytest.mark.parametrize("seed", range(60))
def test_random_operations(seed: int) -> None:
    rng = random.Random(seed)
    tensor, values = made(*(rng.randint(1, 6) for _ in range(rng.randint(1, 3))))
    for _ in range(rng.randint(1, 7)):
        tensor, values = step(rng, tensor, values)
    same(tensor, values)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_taken_apart_is_put_together(seed: int) -> None:
    """`inverse` gives the tensor of which the parts were cut."""
    rng = random.Random(seed)
    tensor, values = made(*(rng.randint(2, 6) for _ in range(rng.randint(2, 3))))
    symbol = whole(tensor, tensor.dtype)
    borders = sorted({0, values.shape[0], rng.randint(0, values.shape[0])})
    pieces = list(pairwise(borders))
    rng.shuffle(pieces)
    parts = [joined([cut(symbol, a, b) for a, b in pieces])]
    if values.ndim == 3:
        parts = [transposed(selected(symbol, n)) for n in range(values.shape[0])]
    others = []
    for part in parts:
        with Files() as files:
            content = np.ascontiguousarray(read(part_of(part, tensor), files))
        source = InFile((content * 10).tobytes(), 0, "int32", content.shape)
        others.append((part, whole(source, "int32")))
    same(inverse(tensor.shape, "int32", others), values * 10)


def part_of(part: Tensor, tensor: Tensor) -> Tensor:
    """Return a part of `whole(tensor)` with the tensor's own values."""
    from pipeline.readers.checkpoint.tensors import resolved

    boxes = tuple(leaf for box in part.boxes for leaf in resolved(box))
    return Tensor(part.shape, tensor.dtype, boxes)


@pytest.mark.parametrize("shape", [(60,), (6, 10), (3, 4, 5), (60, 1), (1, 60), (2, 1, 30), ()])
def test_flat_buffers_in_other_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """A tensor may begin and end in the middle of a rank's part, and in the middle of a row."""
    size = int(np.prod(shape, dtype=int))
    values = np.arange(size + 7, dtype=np.float32)
    values.tofile(tmp_path / "flat")
    for border in (0, 1, 13, size // 2, size + 7):
        first = whole(InFile(str(tmp_path / "flat"), 0, "float32", (border,)), "float32")
        rest = InFile(str(tmp_path / "flat"), 4 * border, "float32", (size + 7 - border,))
        buffer = joined([first, whole(rest, "float32")])
        same(shaped(cut(buffer, 3, 3 + size), shape), values[3 : 3 + size].reshape(shape))


def test_a_missing_part_is_an_error() -> None:
    tensor, _ = made(4, 2)
    hole = placed((6, 2), [((0, 0), tensor)])
    assert not hole.whole
    with Files() as files, pytest.raises(ReadError, match="missing"):
        read(hole, files)
    same(region(hole, (1, 0), (3, 2)), np.arange(8, dtype=np.int32).reshape(4, 2)[1:])


def test_strides_and_byte_order(tmp_path: Path) -> None:
    values = np.arange(24, dtype=">i4").reshape(4, 6)
    values.tofile(tmp_path / "big")
    turned = InFile(str(tmp_path / "big"), 0, "int32", (6, 4), (1, 6), big_endian=True)
    same(whole(turned, "int32"), values.T.astype(np.int32))
    stretched = InFile(str(tmp_path / "big"), 4, "int32", (3, 2), (0, 1), big_endian=True)
    same(whole(stretched, "int32"), np.array([[1, 2]] * 3))


def test_a_file_that_was_cut_meanwhile(tmp_path: Path) -> None:
    np.zeros(10, np.float32).tofile(tmp_path / "x")
    tensor = whole(InFile(str(tmp_path / "x"), 0, "float32", (10,)), "float32")
    (tmp_path / "x").write_bytes(b"short")
    with Files() as files, pytest.raises(ReadError, match="shorter"):
        read(tensor, files)
