"""What a worker of `compare` does: one rank of both dumps, paired and judged where they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .lending import lent
from .loading import load_shards
from .settings import Limits, cpu_count, limits
from .shards import Shard
from .sqlfile import digest, load
from .store import Store
from .wording import ranges
from .work import Work

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
REAL_ERRORS = {
    "step": "BIGINT",
    "bench_seq": "BIGINT",
    "target_seq": "BIGINT",
    "slot": "VARCHAR",
    "max_abs": "DOUBLE",  # over the elements that are finite on both sides
    "scale": "DOUBLE",  # the largest magnitude of both
    "max_element_rel": "DOUBLE",  # of an element, relative to the benchmark's
    "cosine": "DOUBLE",
    "euclid": "DOUBLE",  # L2 norm of the difference
    "thousandth": "DOUBLE",  # share of elements that are off by less than a thousandth
    "five_thousandths": "DOUBLE",
    "ulp": "BIGINT",  # most representable numbers between two elements
    "first_index": "BIGINT[]",  # of the first element that differs
    "other_nonfinite": "BOOLEAN",  # NaN and infinities stand in other places
    "other_bits": "BOOLEAN",  # the numbers are equal, the bits are not: -0.0, the payload of a NaN
}
"""Column -> SQL type of the errors of a pair of tensors whose elements are on record."""
Name = tuple[str, str, str]
RENAMED = {"kind": "VARCHAR", "theirs": "VARCHAR", "ours": "VARCHAR"}
"""What is named (api, path, child, call), its name in the target, its name in the benchmark."""
ALIGNED = {"step": "BIGINT", "bench_seq": "BIGINT", "target_seq": "BIGINT"}


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
        limits: what the worker may use; default: the share of one CPU of where it runs.
        renamed: names of the target that stand for others in the benchmark.
        params: values for the parameters of all questions.
        work: where finished tasks go.
    """

    bench: Side
    target: Side
    noise: tuple[Side, ...]
    questions: tuple[str, ...]
    limits: Limits | None
    renamed: tuple[Name, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    work: Work | None = None

    def __str__(self) -> str:
        shards = self.target.shards
        return f"rank {shards[0].rank}, step {ranges(shard.step for shard in shards)}"

    @cached_property
    def key(self) -> str:
        """Return a name that changes with whatever could change the answers."""
        sides = (self.bench, self.target, *self.noise)
        read = [
            [(s.step, s.rank, s.place, s.bytes, s.newest) for s in side.shards] for side in sides
        ]
        asked = (self.questions, sorted(self.params.items()), self.renamed, digest())
        return hashlib.blake2b(repr((read, asked)).encode(), digest_size=12).hexdigest()


def compare_ranks(task: RankPair) -> dict[str, bytes]:
    """Answer the questions of one pair of ranks; runs in a worker.

    Returns:
        Question -> rows, as a Parquet file; nothing when they could be put where the driver
        finds them.
    """
    with lent(task.limits or limits(cpu_count()), task.params) as store:
        load_pair(store, task)
        answers = {name: store.pack(name) for name in task.questions}
    if task.work and task.work.is_here():
        task.work.put(task.key, answers)
        return {}
    return answers


def load_pair(store: Store, task: RankPair) -> None:
    """Make the tables that the questions of a pair read."""
    across = tuple(name for name in task.questions if name in ACROSS_RANKS)
    _load_sides(store, task.bench, task.target, across, task.renamed)
    store.fill("noise", ERRORS, [row for run in task.noise for row in _noise(task, run)])
    store.fill("real_errors", REAL_ERRORS, _real_errors(store, task))


def _load_sides(
    store: Store,
    bench: Side,
    target: Side,
    across: tuple[str, ...] = (),
    renamed: tuple[Name, ...] = (),
) -> None:
    store.fill("renamed", RENAMED, renamed)
    for name, side in (("bench", bench), ("target", target)):
        extra = across if name == "target" else ()
        with store.inside(name):
            load_shards(store, side.kind, side.shards)
            store.fill("renamed", RENAMED, renamed if name == "target" else ())
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
    if not store.params["cross"]:  # the longest of all questions to plan, and always without a row
        store.fill("fused_pairs", load("diff/fused_pairs").returns, [])


def _noise(task: RankPair, run: Side) -> list[tuple[Any, ...]]:
    """Return how far a further run of the benchmark is from it, by tensor."""
    with lent(task.limits or limits(cpu_count()), task.params) as store:
        _load_sides(store, task.bench, run)
        return [tuple(row.values()) for row in store.rows("diff/noise_errors")]


def _real_errors(store: Store, task: RankPair) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `real_errors`: of tensors whose elements can be read on both sides."""
    folders = [{s.step: s.path for s in side.shards} for side in (task.bench, task.target)]
    rows = store.rows("diff/value_pairs")
    if not rows:
        return
    from .readers.errors import ReadError
    from .readers.raw_values import read_values
    from .real_values import real_errors

    for row in rows:
        step = row["step"]
        try:
            bench = read_values(folders[0][step] / row["bench_path"])
            target = read_values(folders[1][step] / row["path"])
        except ReadError:
            continue  # what is on record of them beside their elements decides
        if bench.ndim == target.ndim:
            common = tuple(map(slice, map(min, bench.shape, target.shape)))
            place = (step, row["bench_seq"], row["target_seq"], row["slot"])
            yield (*place, *real_errors(bench[common], target[common], row["dtype"]))
