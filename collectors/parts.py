"""Writes the parts of a shard: whole tables go in, finished Parquet files come out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .layout import (
    FOOTER_PREFIX,
    FORMAT,
    ROLLOUT_KEYS,
    RUN_FILE,
    SCHEMA_VERSION,
    TABLES,
    UNFINISHED,
    part_name,
    shard_dir,
)
from .schema import ROLLOUTS, TEXT

CODEC = "lz4_raw"
"""Compresses RL data: five times as fast to read as zstd, for a fifth more bytes."""
GROUP_BYTES = 4 * 2**20
"""Keys of RL data share a row group up to this size; beyond, one can be read alone."""


@dataclass(frozen=True)
class RunInfo:
    """What every shard of a run shares; stands in run.json and, in short, in each footer.

    Args:
        run_id: the same for all ranks of a run.
        framework: pytorch, mindspore or mindtorch; empty when it is not known.
        versions: package -> version.
        world_size: number of ranks; None when it is not known.
        config: the collector's configuration.
    """

    run_id: str
    framework: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    world_size: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def write(self, dump: Path) -> None:
        """Write DUMP/run.json; ranks that do it at the same time write the same text."""
        dump.mkdir(parents=True, exist_ok=True)
        text = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **asdict(self)}
        temporary = dump / f"{RUN_FILE}.{os.getpid()}{UNFINISHED}"
        temporary.write_text(json.dumps(text, indent=1, default=str))
        temporary.replace(dump / RUN_FILE)


class PartWriter:
    """Writes one rank's parts of one step; continues the numbers of an earlier process.

    `dropped` counts the calls that could not be recorded; it stands in every footer.
    """

    def __init__(self, dump: Path, *, step: int, rank: int, run: RunInfo) -> None:
        self.folder = shard_dir(dump, step, rank)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.dropped = 0
        self._part = sum(1 for _ in self.folder.glob("calls-*.parquet"))
        self._footer = {
            "format": FORMAT,
            "schema_version": str(SCHEMA_VERSION),
            "run_id": run.run_id,
            "framework": run.framework,
            "versions": json.dumps(dict(run.versions)),
            "step": str(step),
            "rank": str(rank),
        }
        run.write(dump)

    def write(self, tables: Mapping[str, pa.Table], *, complete: bool, damage: str = "") -> None:
        """Write one part of each table.

        Args:
            tables: calls and tensors.
            complete: the step ends with this part.
            damage: what of its source could not be read, when the part was made of another dump.
        """
        footer = self._footer | {
            "dropped": str(self.dropped),
            "complete": str(complete).lower(),
            "damage": damage,
        }
        metadata = {FOOTER_PREFIX + key: value for key, value in footer.items()}
        for name in reversed(TABLES):  # tensors first: a call on disk has its tensors
            final = self.folder / part_name(name, self._part)
            temporary = final.with_name(final.name + UNFINISHED)
            table = tables[name].replace_schema_metadata(metadata)
            write_parquet(table, temporary, ROWS_AT_ONCE[name])
            temporary.replace(final)
        self._part += 1


ROWS_AT_ONCE = {"calls": 8192, "tensors": 2**20}
"""Rows of a row group. The ranks of a group stand with each of its calls, and are read once."""


def write_parquet(table: pa.Table, path: Path, rows_at_once: int | None = None) -> None:
    """Write one Parquet file; float columns get no statistics, by which DuckDB 2.0.1 loses NaN.

    Differences of neighbours stand for integers: ranks of a group, numbers of calls, shapes.
    """
    floats = [f.name for f in table.schema if pa.types.is_floating(f.type)]
    differences = dict.fromkeys(_integers(table.schema), "DELTA_BINARY_PACKED")
    pq.write_table(
        table,
        path,
        row_group_size=rows_at_once,
        compression="zstd",
        use_dictionary=[f.name for f in table.schema if f.type == TEXT],
        column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT") | differences,
        write_statistics=[f.name for f in table.schema if f.name not in floats],
    )


def _integers(schema: pa.Schema) -> Iterator[str]:
    """Yield the paths of integer columns, and of the elements of lists of integers."""
    for column in schema:
        if pa.types.is_integer(column.type):
            yield column.name
        elif pa.types.is_list(column.type) and pa.types.is_integer(column.type.value_type):
            yield f"{column.name}.list.element"


def write_rollouts(
    path: Path, rows: Iterable[Mapping[str, Any]], footer: Mapping[str, str]
) -> None:
    """Write RL data as one Parquet file; keys that are large get row groups of their own.

    Numbers are compressed one by one: who reads them takes equal ones for equal as they are, and
    unpacks each where it goes.
    """
    named = sorted(map(_packed, rows), key=lambda row: str(row["key"]))
    kinds = sorted({(str(row["key"]), row["dtype"] == "text") for row in named})
    schema = ROLLOUTS.with_metadata({**footer, ROLLOUT_KEYS: json.dumps(kinds)})
    with pq.ParquetWriter(
        path,
        schema,
        compression={"texts.list.element": "lz4"},  # opened for each file, which costs zstd more
        use_dictionary=False,
        write_statistics=["key"],
    ) as writer:
        some: list[dict[str, Any]] = []
        for _, of_key in groupby(named, key=lambda row: str(row["key"])):
            some += of_key
            if sum(len(row.get("data") or b"") for row in some) > GROUP_BYTES:
                writer.write_table(pa.Table.from_pylist(some, schema=schema))
                some = []
        if some:
            writer.write_table(pa.Table.from_pylist(some, schema=schema))


def _packed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its numbers compressed, where that makes them smaller."""
    data = row.get("data") or b""
    if not 64 < len(data) < 2**30:  # LZ4 takes 2 GiB at most
        return {**row}
    packed = pa.compress(data, codec=CODEC, asbytes=True)
    return {**row, "data": packed, "codec": CODEC} if len(packed) < len(data) else {**row}
