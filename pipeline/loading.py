"""Puts the rows of shards into a store: tables `calls`, `tensors` and `shard_files`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from collectors.layout import FOOTER_PREFIX, TABLES, UNFINISHED
from collectors.schema import CALLS, TENSORS

from .readers.msprobe.shard import read_shard
from .shards import Shard, refuse_newer
from .store import Store

SCHEMAS = {"calls": CALLS, "tensors": TENSORS}
KEYS = [("step", pa.int64()), ("rank", pa.int64())]
SHARD_FILES = pa.schema(
    [
        *KEYS,
        ("path", pa.string()),
        ("complete", pa.bool_()),  # the step was recorded to its end, and all of it can be read
        ("damage", pa.string()),  # what cannot be read
        ("unfinished", pa.string()),  # what a killed process left
    ]
)


def load_shards(store: Store, kind: str, shards: Sequence[Shard]) -> None:
    """Make `calls` and `tensors` of what can be read, and `shard_files` with their state.

    Args:
        store: where the tables go.
        kind: `shards` or `msprobe`.
        shards: as found by `open_dump`.

    Raises:
        DumpError: a part was written by a newer crossrank.
    """
    states = _load_msprobe(store, shards) if kind == "msprobe" else _load_parquet(store, shards)
    store.put("shard_files", pa.Table.from_pylist(states, SHARD_FILES))
    for table in TABLES:
        store.view(table, store.select(f"schema/{table}"))


def _load_msprobe(store: Store, shards: Sequence[Shard]) -> list[dict[str, object]]:
    rows: dict[str, list[pa.Table]] = {table: [] for table in TABLES}
    states = []
    for shard in shards:
        read = read_shard(shard.path, shard.rank)
        rows["calls"].append(_keyed(read.calls, shard))
        rows["tensors"].append(_keyed(read.tensors, shard))
        states.append(_state(shard, read.damage, read.unfinished))
    for table in TABLES:
        store.view(_files_table(table), store.arrow(pa.concat_tables(rows[table])))
    return states


def _keyed(table: pa.Table, shard: Shard) -> pa.Table:
    """Return the rows with the step and rank that the path of a Parquet part would give."""
    for name, value in (("rank", shard.rank), ("step", shard.step)):
        table = table.add_column(0, name, pa.repeat(pa.scalar(value, pa.int64()), len(table)))
    return table


def _state(shard: Shard, damage: str, unfinished: str) -> dict[str, object]:
    return {
        "step": shard.step,
        "rank": shard.rank,
        "path": str(shard.path),
        "complete": not damage and not unfinished,
        "damage": damage,
        "unfinished": unfinished,
    }


def _load_parquet(store: Store, shards: Sequence[Shard]) -> list[dict[str, object]]:
    parts: list[_Part] = []
    states = []
    for shard in shards:
        found = [_inspect(path) for path in sorted(shard.path.glob("*.parquet"))]
        damage = "; ".join(dict.fromkeys(part.damage for part in found if part.damage))
        left = ", ".join(path.name for path in sorted(shard.path.glob(f"*{UNFINISHED}")))
        cut = f"{left or 'its last part'} was never finished"
        # the mark counts on calls: their part is renamed after that of their tensors
        whole = any(part.complete for part in found if part.path.name.startswith("calls-"))
        states.append(_state(shard, damage, "" if whole else cut))
        parts += [part for part in found if part.readable]
    if any(part.float_statistics for part in parts):
        store.be_nan_safe()
    for table in TABLES:
        files = [str(part.path) for part in parts if part.path.name.startswith(f"{table}-")]
        empty = pa.schema([*KEYS, *SCHEMAS[table]]).empty_table()
        store.view(_files_table(table), store.parquet(files, empty))
    return states


@dataclass(frozen=True)
class _Part:
    """One Parquet file: can it be read, does it end its step, has it float statistics?"""

    path: Path
    readable: bool = True
    damage: str = ""
    complete: bool = False
    float_statistics: bool = False


def _inspect(path: Path) -> _Part:
    try:
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        reason = "is empty" if path.stat().st_size == 0 else f"cannot be read: {error}"
        return _Part(path, readable=False, damage=f"{path.name} {' '.join(reason.split())}")
    footer = {key.decode(): value.decode() for key, value in (metadata.metadata or {}).items()}
    refuse_newer(footer.get(f"{FOOTER_PREFIX}schema_version"), path)
    return _Part(
        path,
        # a file without our footer was written by somebody else: nothing says that it is cut
        damage=footer.get(f"{FOOTER_PREFIX}damage", ""),
        complete=footer.get(f"{FOOTER_PREFIX}complete", "true") == "true",
        float_statistics=_has_float_statistics(metadata),
    )


def _has_float_statistics(metadata: pq.FileMetaData) -> bool:
    if not metadata.num_row_groups:
        return False
    group = metadata.row_group(0)
    return any(
        column.physical_type in ("FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY") and column.is_stats_set
        for column in map(group.column, range(group.num_columns))
    )


def _files_table(table: str) -> str:
    return {"calls": "call_files", "tensors": "tensor_files"}[table]
