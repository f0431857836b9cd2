"""Reads our own shards: `step=<N>/rank=<R>/rollout-*.parquet`, one row a value."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collectors.layout import ROLLOUT, ROLLOUT_KEYS, shard_dirs
from collectors.schema import ROLLOUTS

from ..dtypes import dtype_of, widened
from ..errors import ReadError
from .names import canonical
from .part import Array, Packed, Part, Value, ragged_value, text_value, wanted

MODULE = "shards"
DATA = ROLLOUTS.field("data").type

Row = tuple[Any, ...]
"""Values of the columns of ROLLOUTS; the numbers as bytes."""


@dataclass(frozen=True, eq=False)
class PackedNumbers(Packed):
    """Numbers as a shard holds them.

    Args:
        data: bytes.
        codec: what they are compressed with; None: with nothing.
        dtype: as it was in training.
        shape: of the array.
    """

    data: Array
    codec: str | None
    dtype: str
    shape: tuple[int, ...]

    def unpack(self) -> Array:
        """Return the numbers, in a dtype of NumPy's own."""
        kind, data = dtype_of(self.dtype), self.data
        if self.codec:
            size = math.prod(self.shape) * kind.itemsize
            data = np.frombuffer(_codec(self.codec).decompress(data, size), np.uint8)
        return widened(data.view(kind)).reshape(self.shape)

    def __eq__(self, other: object) -> bool:
        """Tell whether these are the same numbers, by their bytes."""
        return isinstance(other, PackedNumbers) and (
            self._kind == other._kind and np.array_equal(self.data, other.data)
        )

    @cached_property
    def _kind(self) -> tuple[Any, ...]:
        return self.dtype, self.codec, self.shape, self.data.size


def find(path: Path) -> list[Part]:
    """Return a part for each step and rank with rollout files."""
    found = []
    for (step, rank), folder in shard_dirs(path).items() if path.is_dir() else ():
        files = sorted(folder.glob(f"{ROLLOUT}-*.parquet"))
        if files:
            size = sum(file.stat().st_size for file in files)
            found.append(Part(MODULE, step, rank, tuple(map(str, files)), size))
    return found


def read(part: Part, keys: Collection[str] | None) -> list[Value]:
    """Return the values of one step and rank; row groups of other keys are not read."""
    values = []
    for file in part.files:
        try:
            values += [_value(*row) for row in _rows(file, keys) if wanted(_name(row), keys)]
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise ReadError(
                f"{file} cannot be read: {' '.join(str(error).split())}; move it away to compare "
                "without it"
            ) from None
    return values


def keys(part: Part) -> set[str]:
    """Return the keys of one step and rank, as their footers tell them."""
    found = set()
    for file in part.files:
        try:
            footer, _ = _footer(file, os.stat(file).st_mtime_ns)
            told = json.loads((footer.metadata or {})[ROLLOUT_KEYS.encode()])
            found |= {canonical(key, text=text) for key, text in told}
        except (OSError, ValueError, KeyError, pa.ArrowException):
            continue  # told of where its values are read
    return found


def _rows(file: str, keys: Collection[str] | None) -> list[Row]:
    """Return the rows of the row groups in which these keys may be."""
    footer, known = _footer(file, os.stat(file).st_mtime_ns)
    groups = [
        number
        for number, key in enumerate(known)
        if key is None or wanted(canonical(key), keys) or wanted(canonical(key, text=True), keys)
    ]
    if not groups:
        return []
    opened = pq.ParquetFile(pa.OSFile(file), metadata=footer, pre_buffer=False)
    table = opened.read_row_groups(groups, use_threads=False)
    if "codec" not in table.column_names:  # earlier files hold the elements as they are
        table = table.append_column("codec", pa.nulls(len(table), pa.string()))
    columns = (table.column(name) for name in ROLLOUTS.names)
    whole = (_bytes(c) if c.type == DATA else c.to_pylist() for c in columns)
    return list(zip(*whole, strict=True))


def _name(row: Row) -> str:
    """Return the canonical name of what a row holds."""
    return canonical(row[1], text=row[3] == "text")


@lru_cache(maxsize=4096)
def _footer(file: str, changed: int) -> tuple[pq.FileMetaData, list[str | None]]:
    """Return the footer of a file, and the key of each row group; None where it has several.

    Footers stay in memory, since keys are read one by one.
    """
    footer = pq.ParquetFile(pa.OSFile(file)).metadata
    place = footer.schema.names.index("key")
    columns = [footer.row_group(n).column(place) for n in range(footer.num_row_groups)]
    told = [column.statistics for column in columns]
    return footer, [k.min if k and k.has_min_max and k.min == k.max else None for k in told]


def _bytes(column: pa.ChunkedArray) -> list[Array]:
    """Return each element as a view; a scalar of Arrow would copy it."""
    found = []
    for chunk in column.chunks:
        _, ends, content = chunk.buffers()
        places = np.frombuffer(ends, np.int64, len(chunk) + 1, 8 * chunk.offset)
        numbers = np.frombuffer(content or b"", np.uint8)
        found += [numbers[start:end] for start, end in pairwise(places.tolist())]
    return found


@lru_cache(maxsize=8)
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)


def _value(
    micro: int | None,
    name: str,
    entry: str | None,
    kind: str,
    shape: list[int] | None,
    lengths: list[int] | None,
    data: Array,
    codec: str | None,
    texts: list[str] | None,
) -> Value:
    number, place = micro or 0, entry or ""
    if kind == "text":
        value = text_value(number, canonical(name, text=True), texts or [])
        return replace(value, entry=place, name=name)
    size = tuple(shape or ()) if lengths is None else (sum(lengths),)
    numbers = PackedNumbers(data, codec, kind, size)
    if lengths is not None:
        ends = np.cumsum(lengths)
        rows = np.split(numbers.unpack(), ends[:-1]) if len(ends) else []
        return replace(ragged_value(number, canonical(name), rows, kind), name=name)
    return Value(number, canonical(name), place, kind, size, numbers, name=name)
