"""Puts the rows of shards into a store: tables `calls`, `tensors` and `shard_files`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from collectors.layout import TABLES, UNFINISHED, part_name

from .shards import Shard, refuse_newer
from .sqlfile import load
from .store import Store

SHARD_FILES = {
    "step": "BIGINT",
    "rank": "BIGINT",
    "path": "VARCHAR",
    "node": "VARCHAR",  # the one that could read it; empty when any could
    "complete": "BOOLEAN",  # the step was recorded to its end, and all of it can be read
    "damage": "VARCHAR",  # what cannot be read
    "unfinished": "VARCHAR",  # what a killed process left
}
FILES_OF = {"calls": "call_files", "tensors": "tensor_files"}
"""Table -> the rows of its files as they stand there, where that is not the newest form."""


@dataclass(frozen=True)
class ShardState:
    """What could not be read of a shard; empty texts when it is whole."""

    shard: Shard
    damage: str
    unfinished: str

    @property
    def row(self) -> tuple[object, ...]:
        """Return the row of `shard_files`."""
        whole = not self.damage and not self.unfinished
        shard = self.shard
        return (
            *(shard.step, shard.rank, shard.place, shard.node),
            *(whole, self.damage, self.unfinished),
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
    local = [here(shard, store.folder) for shard in shards]
    if kind == "msprobe":
        from .loading_msprobe import load_msprobe

        states = load_msprobe(store, local)
    else:
        states = _load_parquet(store, local)
    store.fill("shard_files", SHARD_FILES, [state.row for state in states])


def show(store: Store, table: str, rows: duckdb.DuckDBPyRelation) -> None:
    """Make a view of the rows of files: as they stand, where they are of the newest form."""
    newest = load(f"schema/{table}")
    kinds = dict(zip(rows.columns, map(str, rows.types), strict=True))
    if all(kinds.get(column) == kind for column, kind in newest.returns.items()):
        store.view(table, rows.select(*map(duckdb.ColumnExpression, newest.returns)))
        return
    nulls = [duckdb.ConstantExpression(None).alias(c) for c in newest.returns if c not in kinds]
    store.view(FILES_OF[table], rows.select(duckdb.StarExpression(), *nulls))
    store.view(table, store.select(newest.name))


def here(shard: Shard, folder: Path) -> Shard:
    """Return a shard that lies on this machine; one in object storage is copied below `folder`."""
    if not shard.url:
        return shard
    from .remote import fetched

    return fetched(shard, folder)


@dataclass(frozen=True)
class _Part:
    """One Parquet file: what is wrong with it, whether it is ours, whether it ends its step."""

    damage: str
    readable: bool = True
    ours: bool = True
    complete: bool = False


def _load_parquet(store: Store, shards: Sequence[Shard]) -> list[ShardState]:
    found = {shard: sorted(map(str, shard.path.glob("*.parquet"))) for shard in shards}
    parts = _inspect(store, [file for files in found.values() for file in files])
    foreign = [file for file, part in parts.items() if part.readable and not part.ours]
    if foreign and store.select("schema/parts_with_float_statistics", files=foreign).fetchall():
        store.be_nan_safe()
    for files in found.values():
        parts |= _torn(files, parts)
    for table in TABLES:
        whole = [f for f, part in parts.items() if part.readable and f"/{table}-" in f]
        show(store, table, _rows(store, table, whole))
    return [_state(shard, {file: parts[file] for file in files}) for shard, files in found.items()]


def _rows(store: Store, table: str, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """Return the rows of Parquet files, by column name, with step and rank from their paths.

    The columns of each are looked at even where all are alike: without that, DuckDB 2.0.1 picks
    joins that make a batch take a seventh to a third longer.
    """
    if files:
        return store.con.read_parquet(list(files), union_by_name=True, hive_partitioning=True)
    columns = load(f"schema/{table}").returns
    nothing = [duckdb.ConstantExpression(None).cast(k).alias(c) for c, k in columns.items()]
    return store.con.sql("SELECT 1 WHERE false").select(*nothing)


def _state(shard: Shard, parts: dict[str, _Part]) -> ShardState:
    damage = "; ".join(dict.fromkeys(part.damage for part in parts.values() if part.damage))
    # the mark counts on calls: their part is renamed after that of their tensors
    if any(part.complete for file, part in parts.items() if "/calls-" in file):
        return ShardState(shard, damage, "")
    left = ", ".join(path.name for path in sorted(shard.path.glob(f"*{UNFINISHED}")))
    return ShardState(shard, damage, f"{left or 'its last part'} was never finished")


def _torn(files: Sequence[str], parts: dict[str, _Part]) -> dict[str, _Part]:
    """Return our parts of calls that cannot be used, as other parts of the shard are missing.

    Calls without their tensors would seem to have read nothing. A part of tensors alone is what a
    process leaves that was killed between the two.
    """
    torn = {}
    calls = [file for file in files if "/calls-" in file]
    for number, file in enumerate(calls):
        part, twin = parts[file], file.replace("/calls-", "/tensors-")
        if not part.readable or not part.ours:
            continue
        if twin not in parts:
            torn[file] = replace(part, readable=False, damage=f"{Path(twin).name} is missing")
        elif not parts[twin].readable:  # which is told of already
            torn[file] = replace(part, readable=False)
        elif not file.endswith(part_name("calls", number)):
            torn[file] = replace(part, damage=f"a part before {Path(file).name} is missing")
    return torn


def _inspect(store: Store, files: Sequence[str]) -> dict[str, _Part]:
    """Return the state of each file; some broken ones are found by trying halves."""
    if not files:
        return {}
    try:
        rows = store.select("schema/part_footers", files=list(files)).fetchall()
    except duckdb.Error as error:
        if len(files) > 1:
            middle = len(files) // 2
            return _inspect(store, files[:middle]) | _inspect(store, files[middle:])
        return {files[0]: _Part(_broken(Path(files[0]), error), readable=False)}
    footers: dict[str, dict[str, str]] = {file: {} for file in files}
    for file, entry, content in rows:
        footers[file][entry] = content
    return {file: _part(file, footer) for file, footer in footers.items()}


def _part(file: str, footer: dict[str, str]) -> _Part:
    refuse_newer(footer.get("schema_version"), Path(file))
    # a file without our footer was written by somebody else: nothing says that it is cut
    complete = footer.get("complete", "true") == "true"
    return _Part(footer.get("damage", ""), ours=bool(footer), complete=complete)


def _broken(file: Path, error: duckdb.Error) -> str:
    if file.stat().st_size == 0:
        return f"{file.name} is empty"
    return f"{file.name} cannot be read: {' '.join(str(error).split())}"
