"""What a worker does: the rank-scope questions over a batch of shards, where they lie."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any

from .lending import lent
from .loading import load_shards
from .settings import Limits, cpu_count, limits
from .shards import Dump, Shard
from .sqlfile import digest
from .wording import ranges, ranks_text
from .work import Work

BATCH_BYTES = {"shards": 12 * 2**20, "msprobe": 96 * 2**20}
"""Of one batch: some 16 ranks of 20,000 calls, or 5 as JSON; keeps a worker at a few 100 MiB."""


WANTED = {"step": "BIGINT", "rank": "BIGINT", "seq": "BIGINT"}
"""Columns of `wanted`, the calls that a question asks about."""


@dataclass(frozen=True)
class Batch:
    """Shards for one task: all steps of some ranks.

    Args:
        kind: `shards` or `msprobe`.
        shards: what to read, on one node or where any can.
        questions: names of rank-scope files; each gives a table.
        limits: what the worker may use; default: the share of one CPU of where it runs.
        params: values for the parameters of all questions.
        wanted: calls that a question asks about, by step, rank and seq.
        work: where finished batches go.
    """

    kind: str
    shards: tuple[Shard, ...]
    questions: tuple[str, ...]
    limits: Limits | None
    params: Mapping[str, Any] = field(default_factory=dict)
    wanted: tuple[tuple[int, int, int], ...] = ()
    work: Work | None = None

    def __str__(self) -> str:
        ranks = ranks_text(shard.rank for shard in self.shards)
        return f"{ranks}, step {ranges(shard.step for shard in self.shards)}"

    @property
    def node(self) -> str:
        """Return the node that it must be done on; empty when any will do."""
        return self.shards[0].node

    @cached_property
    def key(self) -> str:
        """Return a name that changes with whatever could change the answers."""
        read = [(s.step, s.rank, s.place, s.bytes, s.newest, s.node) for s in self.shards]
        asked = (self.kind, self.questions, sorted(self.params.items()), self.wanted, digest())
        return hashlib.blake2b(repr((read, asked)).encode(), digest_size=12).hexdigest()

    def split(self) -> list[Batch]:
        """Return a batch for each rank; the batch itself when it has one only."""
        ranks = sorted({shard.rank for shard in self.shards})
        return [
            replace(self, shards=tuple(s for s in self.shards if s.rank == rank)) for rank in ranks
        ]


def batches(
    dump: Dump,
    questions: Iterable[str],
    limits: Limits | None,
    params: Mapping[str, Any],
    *,
    workers: int = 1,
) -> list[Batch]:
    """Return the tasks of a dump: every rank whole, some ranks together while they are small.

    There are at least as many tasks as workers, if there are ranks enough. Shards of different
    nodes stay apart, and the nodes take turns, so that all are busy from the start.
    """
    by_node: dict[str, list[Shard]] = defaultdict(list)
    for shard in dump.shards:
        by_node[shard.node].append(shard)
    queues = []
    for held in by_node.values():
        singles = Batch(dump.kind, tuple(held), tuple(questions), limits, params).split()
        rounds = -(-_size(singles) // (workers * BATCH_BYTES[dump.kind]))
        queues.append(list(_packed(singles, workers * rounds)))
    return [batch for batch in chain.from_iterable(zip_longest(*queues)) if batch]


def _packed(singles: Sequence[Batch], count: int) -> Iterator[Batch]:
    """Yield up to `count` batches of much the same size: neighbours, put together."""
    whole = max(_size(singles), 1)
    groups: dict[int, list[Shard]] = defaultdict(list)
    before = 0
    for number, single in enumerate(singles):
        size = _size([single])
        place = number if count >= len(singles) else (before + size // 2) * count // whole
        groups[place] += single.shards
        before += size
    for shards in groups.values():
        yield replace(singles[0], shards=tuple(shards))


def _size(batches: Iterable[Batch]) -> int:
    """Return the bytes of what batches read."""
    return sum(shard.bytes for batch in batches for shard in batch.shards)


def run_batch(batch: Batch) -> dict[str, bytes]:
    """Answer the questions of one batch; runs in a worker.

    Returns:
        Question -> rows, as a Parquet file; nothing when they could be put where the driver
        finds them.
    """
    with lent(batch.limits or limits(cpu_count()), batch.params) as store:
        load_shards(store, batch.kind, batch.shards)
        store.fill("wanted", WANTED, batch.wanted)
        answers = {name: store.pack(name) for name in batch.questions}
    if batch.work and batch.work.is_here():
        batch.work.put(batch.key, answers)
        return {}
    return answers
