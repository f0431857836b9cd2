"""What a worker does: the rank-scope questions over a batch of shards, where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from .loading import load_shards
from .settings import Limits
from .shards import Dump, Shard
from .store import Store
from .wording import ranges, ranks_text

BATCH_BYTES = 32 * 2**20
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
    dump: Dump, questions: Iterable[str], limits: Limits, params: Mapping[str, Any]
) -> list[Batch]:
    """Return the tasks of a dump: every rank whole, some ranks together while they are small."""
    whole = Batch(dump.kind, dump.shards, tuple(questions), limits, params)
    if dump.kind == "msprobe":  # parsing JSON takes far more than a task costs
        return whole.split()
    return list(_packed(whole.split()))


def _packed(singles: Iterable[Batch]) -> Iterator[Batch]:
    shards: list[Shard] = []
    last: Batch | None = None
    for last in singles:
        if shards and sum(s.bytes for s in (*shards, *last.shards)) > BATCH_BYTES:
            yield replace(last, shards=tuple(shards))
            shards = []
        shards += last.shards
    if last:
        yield replace(last, shards=tuple(shards))


def run_batch(batch: Batch) -> dict[str, pa.Table]:
    """Return question -> rows for one batch; runs in a worker."""
    with Store(batch.limits, batch.params) as store:
        load_shards(store, batch.kind, batch.shards)
        return {name: store.answer(name) for name in batch.questions}
