"""What a worker of `compare` does: one rank of both dumps, paired and judged where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .loading import load_shards
from .settings import Limits
from .shards import Shard
from .sqlfile import load
from .store import Store
from .wording import ranges

SIDE_QUESTIONS = {
    "calls": "diff/call_keys",
    "tensors": "diff/tensor_keys",
    "stacks": "diff/stacks",
}
"""Table of a side -> the question whose rows it holds."""
ACROSS_RANKS = ("health/shards", "comm/groups", "comm/operations")
"""Asked of the target where it has several ranks: what orders their calls."""

ERRORS = {
    "step": "BIGINT",
    "bench_seq": "BIGINT",
    "slot": "VARCHAR",
    "max_error": "DOUBLE",
    "mean_error": "DOUBLE",
    "norm_error": "DOUBLE",
}
ALIGNED = {"step": "BIGINT", "bench_seq": "BIGINT", "target_seq": "BIGINT"}
REAL_ERRORS = {
    "step": "BIGINT",
    "bench_seq": "BIGINT",
    "target_seq": "BIGINT",
    "slot": "VARCHAR",
    "max_abs": "DOUBLE",
    "scale": "DOUBLE",
}


@dataclass(frozen=True)
class Side:
    """The shards of one rank in one dump: all of its steps."""

    kind: str
    shards: tuple[Shard, ...]


@dataclass(frozen=True)
class RankPair:
    """One rank of the target and its counterpart in the benchmark: a task.

    Args:
        bench, target: what is held against each other.
        noise: the same rank in further runs of the benchmark.
        questions: names of rank-scope files; each gives a table.
        limits: what the worker may use.
        params: values for the parameters of all questions.
    """

    bench: Side
    target: Side
    noise: tuple[Side, ...]
    questions: tuple[str, ...]
    limits: Limits
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shards = self.target.shards
        return f"rank {shards[0].rank}, step {ranges(shard.step for shard in shards)}"


def compare_ranks(task: RankPair) -> dict[str, bytes]:
    """Return question -> rows, as a Parquet file, for one pair of ranks; runs in a worker."""
    with Store(task.limits, task.params) as store:
        load_pair(store, task)
        return {name: store.pack(name) for name in task.questions}


def load_pair(store: Store, task: RankPair) -> None:
    """Make the tables that the questions of a pair read."""
    across = tuple(name for name in task.questions if name in ACROSS_RANKS)
    _load_sides(store, task.bench, task.target, across)
    noise: list[tuple[Any, ...]] = []
    for run in task.noise:
        noise += _noise(task, run)
    store.fill("noise", ERRORS, noise)
    store.fill("real_errors", REAL_ERRORS, [])


def _load_sides(
    store: Store, bench: Side, target: Side, across: tuple[str, ...] = ()
) -> None:
    for name, side in (("bench", bench), ("target", target)):
        extra = across if name == "target" else ()
        with store.inside(name):
            load_shards(store, side.kind, side.shards)
            for question in (*SIDE_QUESTIONS.values(), *extra):
                store.answer(question)
        for table, question in SIDE_QUESTIONS.items():
            store.bring(name, question, f"{name}_{table}")
        for question in extra:
            store.bring(name, question, load(question).table)
    uneven = store.columns_of("diff/uneven")
    pairs: list[tuple[int, int, int]] = []
    if uneven:
        from .alignment import align_parts

        pairs = align_parts(uneven, same_shapes=store.params["cross"])
    store.fill("aligned", ALIGNED, pairs)


def _noise(task: RankPair, run: Side) -> list[tuple[Any, ...]]:
    """Return how far a further run of the benchmark is from it, by tensor."""
    with Store(task.limits, task.params) as store:
        _load_sides(store, task.bench, run)
        return [tuple(row.values()) for row in store.rows("diff/noise_errors")]
