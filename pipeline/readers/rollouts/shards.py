"""Reads our own shards: `step=<N>/rank=<R>/rollout-*.parquet`, one row a value."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

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
            for table in _tables(file, keys):
                columns = [table.column(name) for name in ROLLOUTS.names]
                values += [_value(*row) for row in zip(*columns, strict=True)]
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
            opened = _opened(file)
            known = {key for key in _groups(opened) if key}
            if len(known) == opened.num_row_groups and not known & set(TEXTS):
                found |= {canonical(key) for key in known}
                continue
            table = opened.read(columns=["key", "dtype"])
        except (OSError, ValueError, pa.ArrowException):
            continue  # told of where its values are read
        rows = zip(*(table.column(name).to_pylist() for name in ("key", "dtype")), strict=True)
        found |= {canonical(key, text=dtype == "text") for key, dtype in rows}
    return found


def _opened(file: str) -> pq.ParquetFile:
    """Return an open file; a thread's last ones stay open, since keys are read one by one."""
    return _kept(file, os.stat(file).st_mtime_ns, threading.get_ident())


@lru_cache(maxsize=16)
def _kept(file: str, changed: int, thread: int) -> pq.ParquetFile:
    return pq.ParquetFile(file)


def _groups(opened: pq.ParquetFile) -> list[str | None]:
    """Return the key of each row group; None where it holds several, or does not tell."""
    place = opened.schema_arrow.get_field_index("key")
    columns = [opened.metadata.row_group(n).column(place) for n in range(opened.num_row_groups)]
    told = [column.statistics for column in columns]
    return [k.min if k and k.has_min_max and k.min == k.max else None for k in told]


def _tables(file: str, keys: Collection[str] | None) -> Iterator[pa.Table]:
    opened = _opened(file)
    groups = [
        number
        for number, key in enumerate(_groups(opened))
        if key is None or wanted(canonical(key), keys) or wanted(canonical(key, text=True), keys)
    ]
    if groups:
        yield opened.read_row_groups(groups, use_threads=False)


def _value(
    micro: pa.Scalar,
    key: pa.Scalar,
    entry: pa.Scalar,
    dtype: pa.Scalar,
    shape: pa.Scalar,
    lengths: pa.Scalar,
    data: pa.Scalar,
    texts: pa.Scalar,
) -> Value:
    name, kind = key.as_py(), dtype.as_py()
    number, place = micro.as_py() or 0, entry.as_py() or ""
    if kind == "text":
        value = text_value(number, canonical(name, text=True), texts.as_py())
        return replace(value, entry=place, name=name)
    flat = widened(np.frombuffer(data.as_buffer(), dtype_of(kind)))
    if lengths.is_valid:
        ends = np.cumsum(lengths.as_py())
        rows = np.split(flat, ends[:-1]) if len(ends) else []
        return replace(ragged_value(number, canonical(name), rows, kind), name=name)
    size = tuple(shape.as_py())
    return Value(number, canonical(name), place, kind, size, flat.reshape(size), name=name)
