"""What every reader gives: parts of a collection, and the values in them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ReadError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """One rank's record of one step.

    Args:
        module: the reader's module.
        step: training step, from 0.
        rank: global rank; the node's running number where a trainer writes none.
        files: what to read.
        bytes: their size.
        node: where they lie, when only one node can read them; else empty.
    """

    module: str
    step: int
    rank: int
    files: tuple[str, ...]
    bytes: int = 0
    node: str = ""


class Packed(ABC):
    """Numbers as they lie on disk; a reader's own class, whose equal ones hold equal numbers."""

    @abstractmethod
    def unpack(self) -> Array:
        """Return the numbers."""


@dataclass(frozen=True)
class Value:
    """One value that was saved.

    Args:
        micro: micro step.
        key: canonical name where it has one (see `names`), else as the user called it.
        entry: place in a list or name in a dict; empty for a tensor of its own.
        dtype: as it was in training: float32, bfloat16, int64, text.
        shape: as it was in training; of a ragged value, that of the rectangle around it.
        content: numbers in a dtype that holds them exactly, texts as objects, or packed numbers.
        lengths: real length of each row of a ragged value, [n]; None for a rectangle.
        name: as the user called it.
    """

    micro: int
    key: str
    entry: str
    dtype: str
    shape: tuple[int, ...]
    content: Array | Packed = field(repr=False)
    lengths: Array | None = field(default=None, repr=False)
    name: str = ""

    @property
    def array(self) -> Array:
        """Return the content; what is packed is unpacked anew each time, and held by nobody."""
        return self.content.unpack() if isinstance(self.content, Packed) else self.content


def number_value(micro: int, key: str, content: Any, *, entry: str = "") -> Value:
    """Return numbers, or an array, as a value."""
    array = np.asarray(content)
    return Value(micro, key, entry, str(array.dtype), array.shape, array)


def text_value(micro: int, key: str, texts: list[str]) -> Value:
    """Return texts, one a sample, as a value."""
    array = np.array(texts, dtype=object)
    return Value(micro, key, "", "text", array.shape, array)


def ragged_value(micro: int, key: str, rows: list[Any], dtype: str = "") -> Value:
    """Return lists of different lengths, one a sample, as a rectangle with lengths."""
    arrays = [np.asarray(row) for row in rows]
    arrays = [a.astype(np.float64) if a.dtype == object else a for a in arrays]  # None is NaN
    kinds = [array.dtype for array in arrays if array.size]
    kind = np.result_type(*kinds) if kinds else np.dtype("float32")
    inner = next((array.shape[1:] for array in arrays if array.ndim > 1), ())
    lengths = np.array([len(array) for array in arrays], dtype=np.int64)
    width = int(lengths.max(initial=0))
    block = np.zeros((len(arrays), width, *inner), dtype=kind)
    for row, array in enumerate(arrays):
        if array.size:
            block[row, : len(array)] = array
    return Value(micro, key, "", dtype or str(kind), block.shape, block, lengths)


def wanted(key: str, keys: Collection[str] | None) -> bool:
    """Tell whether a key is among those asked for."""
    return keys is None or key in keys


def read_json(file: Path) -> Any:
    """Return the content of a JSON file.

    Raises:
        ReadError: it is not JSON.
    """
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ReadError(f"{file} cannot be read as JSON: {error}") from None
