"""Reads our own shards: `step=<N>/rank=<R>/rollout-*.parquet`, one row a value."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collectors.layout import ROLLOUT, shard_dirs
from collectors.schema import ROLLOUTS

from ..dtypes import dtype_of, widened
from ..errors import ReadError
from .names import TEXTS, canonical
from .part import Part, Value, ragged_value, text_value, wanted

MODULE = "shards"
DATA = ROLLOUTS.field("data").type


def find_shards(path: Path) -> list[Part]:
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
            values += [_value(*row) for row in _rows(file, keys)]
        except (OSError, ValueError, pa.ArrowException) as error:
            raise ReadError(
                f"{file} cannot be read: {' '.join(str(error).split())}; move it away to compare "
                "without it"
            ) from None
    return [value for value in values if wanted(value.key, keys)]


def keys(part: Part) -> set[str]:
    """Return the keys of one step and rank, from footers where these tell."""
    found = set()
    for file in part.files:
        try:
            footer, groups = _footer(file)
            known = {key for key in groups if key}
            if len(known) == len(groups) and not known & set(TEXTS):
                found |= {canonical(key) for key in known}
                continue
            table = pq.ParquetFile(file, metadata=footer).read(columns=["key", "dtype"])
        except (OSError, ValueError, pa.ArrowException):
            continue  # told of where its values are read
        rows = zip(*(table.column(name).to_pylist() for name in ("key", "dtype")), strict=True)
        found |= {canonical(key, text=dtype == "text") for key, dtype in rows}
    return found


def _footer(file: str) -> tuple[pq.FileMetaData, list[str | None]]:
    """Return the footer of a file, and the key of each row group; None where that is not told."""
    return _kept(file, os.stat(file).st_mtime_ns)


@lru_cache(maxsize=4096)
def _kept(file: str, changed: int) -> tuple[pq.FileMetaData, list[str | None]]:
    """Return the footer; it stays in memory, since keys are read one by one."""
    footer = pq.ParquetFile(pa.OSFile(file)).metadata
    place = footer.schema.names.index("key")
    columns = [footer.row_group(n).column(place) for n in range(footer.num_row_groups)]
    told = [column.statistics for column in columns]
    return footer, [k.min if k and k.has_min_max and k.min == k.max else None for k in told]


def _rows(file: str, keys: Collection[str] | None) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a file in which these keys may be; the numbers as Arrow scalars."""
    footer, known = _footer(file)
    groups = [
        number
        for number, key in enumerate(known)
        if key is None or wanted(canonical(key), keys) or wanted(canonical(key, text=True), keys)
    ]
    if groups:
        opened = pq.ParquetFile(pa.OSFile(file), metadata=footer, pre_buffer=False)
        table = opened.read_row_groups(groups, use_threads=False)
        columns = (table.column(name) for name in ROLLOUTS.names)
        # a scalar of a buffer is a view
        whole = (list(c) if c.type == DATA else c.to_pylist() for c in columns)
        yield from zip(*whole, strict=True)


def _value(
    micro: int | None,
    name: str,
    entry: str | None,
    kind: str,
    shape: list[int] | None,
    lengths: list[int] | None,
    data: pa.Scalar,
    texts: list[str] | None,
) -> Value:
    number, place = micro or 0, entry or ""
    if kind == "text":
        value = text_value(number, canonical(name, text=True), texts or [])
        return replace(value, entry=place, name=name)
    flat = widened(np.frombuffer(data.as_buffer(), dtype_of(kind)))
    if lengths is not None:
        ends = np.cumsum(lengths)
        rows = np.split(flat, ends[:-1]) if len(ends) else []
        return replace(ragged_value(number, canonical(name), rows, kind), name=name)
    size = tuple(shape or ())
    return Value(number, canonical(name), place, kind, size, flat.reshape(size), name=name)
