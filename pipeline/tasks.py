"""What a worker does: the rank-scope questions over a batch of shards, where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .loading import load_shards
from .settings import Limits
from .shards import Dump, Shard
from .store import Store
from .wording import ranges, ranks_text

BATCH_BYTES = 12 * 2**20
"""Parquet of one batch: some 16 ranks of 20,000 calls; keeps a worker under a few hundred MiB."""


@dataclass(frozen=True)
class Batch:
    """Shards for one task: all steps of some ranks.

    Args:
        kind: `shards` or `msprobe`.
        shards: what to read.
        questions: names of rank-scope files; each gives a table.
        limits: what the worker may use.
        params: values for the parameters of all questions.
    """

    kind: str
    shards: tuple[Shard, ...]
    questions: tuple[str, ...]
    limits: Limits
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        ranks = ranks_text(shard.rank for shard in self.shards)
        return f"{ranks}, step {ranges(shard.step for shard in self.shards)}"

    def split(self) -> list[Batch]:
        """Return a batch for each rank; the batch itself when it has one only."""
        ranks = sorted({shard.rank for shard in self.shards})
        return [
            replace(self, shards=tuple(s for s in self.shards if s.rank == rank)) for rank in ranks
        ]


def batches(
    dump: Dump,
    questions: Iterable[str],
    limits: Limits,
    params: Mapping[str, Any],
    *,
    workers: int = 1,
) -> list[Batch]:
    """Return the tasks of a dump: every rank whole, some ranks together while they are small.

    There are at least as many tasks as workers, if there are ranks enough.
    """
    whole = Batch(dump.kind, dump.shards, tuple(questions), limits, params)
    if dump.kind == "msprobe":  # parsing JSON takes far more than a task costs
        return whole.split()
    share = sum(shard.bytes for shard in dump.shards) // workers + 1
    return list(_packed(whole.split(), min(BATCH_BYTES, share)))


def _packed(singles: Iterable[Batch], most: int) -> Iterator[Batch]:
    """Yield batches that were put together up to `most` bytes."""
    shards: list[Shard] = []
    for single in singles:
        if shards and sum(shard.bytes for shard in (*shards, *single.shards)) > most:
            yield replace(single, shards=tuple(shards))
            shards = []
        shards += single.shards
    if shards:
        yield replace(single, shards=tuple(shards))


def run_batch(batch: Batch) -> dict[str, bytes]:
    """Return question -> rows, as a Parquet file, for one batch; runs in a worker."""
    with Store(batch.limits, batch.params) as store:
        load_shards(store, batch.kind, batch.shards)
        return {name: store.pack(name) for name in batch.questions}
