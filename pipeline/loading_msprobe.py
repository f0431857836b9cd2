"""Puts the records of an msprobe dump into a store, in the form that Parquet parts would give."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from .loading import FILES_OF, ShardState, show
from .readers.msprobe.shard import read_shard
from .shards import Shard
from .store import Store


def load_msprobe(store: Store, shards: Sequence[Shard]) -> list[ShardState]:
    """Make views of the rows of rank folders; return what could not be read of each."""
    rows: dict[str, list[pa.Table]] = {table: [] for table in FILES_OF}
    states = []
    for shard in shards:
        read = read_shard(shard.path, shard.rank)
        rows["calls"].append(_keyed(read.calls, shard))
        rows["tensors"].append(_keyed(read.tensors, shard))
        states.append(ShardState(shard, read.damage, read.unfinished))
    for table, parts in rows.items():
        show(store, table, store.arrow(pa.concat_tables(parts)))
    return states


def _keyed(table: pa.Table, shard: Shard) -> pa.Table:
    """Return the rows with the step and rank that the path of a Parquet part would give."""
    for name, value in (("rank", shard.rank), ("step", shard.step)):
        table = table.add_column(0, name, pa.repeat(pa.scalar(value, pa.int64()), len(table)))
    return table
