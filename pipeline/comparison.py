"""The way from two dumps to the result of `compare`: pairs of ranks first, then over all ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analyzers.run_diff import RANK_QUESTIONS, run_diff

from .database import RunDatabase
from .engine import Engine, Failure
from .errors import UsageError
from .pairing import ACROSS_RANKS, RankPair, Side, compare_ranks
from .settings import Limits
from .shards import Dump
from .store import Store
from .wording import ranges, ranks_text

_FRAMEWORK = re.compile(rb'"framework"\s*:\s*"(\w+)"')
HEAD = 4096
"""Bytes of a dump.json that its framework stands in."""

MINDSPORE = "mindspore"


@dataclass(frozen=True)
class Comparison:
    """What is held against each other.

    Args:
        bench, target: the dumps.
        noise: further runs of the benchmark's code.
        strict: every bit must be equal.
        counterparts: rank of the target -> ranks of the benchmark.
    """

    bench: Dump
    target: Dump
    noise: tuple[Dump, ...]
    strict: bool
    counterparts: Mapping[int, Sequence[int]]

    @property
    def params(self) -> dict[str, Any]:
        """Return values for the parameters of all questions."""
        cross = (framework(self.bench) == MINDSPORE) != (framework(self.target) == MINDSPORE)
        return {
            "cross": cross,
            "strict": self.strict,
            "nan_only": False,
            "world_size": self.target.world_size,
        }

    def tasks(self, limits: Limits, params: Mapping[str, Any]) -> Iterator[RankPair]:
        """Yield a task for each pair of ranks."""
        across = ACROSS_RANKS if len(self.counterparts) > 1 else ()
        for rank, counterparts in self.counterparts.items():
            for other in counterparts:
                yield RankPair(
                    bench=_side(self.bench, other),
                    target=_side(self.target, rank),
                    noise=tuple(_side(run, other) for run in self.noise),
                    questions=(*RANK_QUESTIONS, *across),
                    limits=limits,
                    params=params,
                )


def compare_dumps(
    comparison: Comparison, store: Store, engine: Engine, worker: Limits
) -> dict[str, Any]:
    """Return the result document of CONTRACT section 2; every table behind it is then in `store`.

    Args:
        comparison: what is compared.
        store: an empty database with the parameters of the comparison.
        engine: closed when the ranks have been read.
        worker: what each task may use.
    """
    warnings = _not_compared(comparison)
    for name in (*RANK_QUESTIONS, *ACROSS_RANKS):
        store.declare(name)
    try:
        for task, result in engine.map(compare_ranks, comparison.tasks(worker, store.params)):
            if isinstance(result, Failure):
                warnings.append(_warning("shard_unreadable", f"{task}: {result.reason}"))
                continue
            for name, rows in result.items():
                store.unpack(name, rows)
    finally:
        engine.close()
    found = run_diff(RunDatabase(store))
    return {
        "tool": "compare",
        "schema": 1,
        "bench": str(comparison.bench.path),
        "target": str(comparison.target.path),
        **found,
        "warnings": warnings + found["warnings"],
    }


def framework(dump: Dump) -> str:
    """Return what a dump was recorded with: pytorch, mindspore, mindtorch; empty if it is not said."""
    if dump.kind == "shards":
        return str(dump.run.get("framework") or "")
    for shard in dump.shards:
        for name in ("dump.json", "debug.json"):
            if (shard.path / name).exists():
                with (shard.path / name).open("rb") as file:
                    match = _FRAMEWORK.search(file.read(HEAD))
                return match[1].decode() if match else ""
    return ""


def counterparts(bench: Dump, target: Dump) -> dict[int, list[int]]:
    """Return rank of the target -> ranks of the benchmark that it is held against.

    By number when both have as many; else by blocks: with tensor parallelism innermost, as
    Megatron and DTensor meshes place it, ranks 0 to 3 together are what rank 0 alone is.

    Raises:
        UsageError: neither number of ranks is a multiple of the other.
    """
    ours, theirs = (sorted({shard.rank for shard in dump.shards}) for dump in (target, bench))
    if ours == theirs or len(ours) == len(theirs):
        return {a: [b] for a, b in zip(ours, theirs)}
    small, large = sorted((len(ours), len(theirs)))
    if large % small:
        raise UsageError(
            f"{target.path} has {ranks_text(ours)}, {bench.path} has {ranks_text(theirs)}; one "
            "number of ranks must be a multiple of the other, or give --ranks TARGET:BENCH ..."
        )
    block = large // small
    if len(ours) == large:
        return {rank: [theirs[place // block]] for place, rank in enumerate(ours)}
    return {rank: theirs[place * block : (place + 1) * block] for place, rank in enumerate(ours)}


def _side(dump: Dump, rank: int) -> Side:
    return Side(dump.kind, tuple(shard for shard in dump.shards if shard.rank == rank))


def _not_compared(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a warning for each step that only one dump has."""
    steps = [
        {shard.step for shard in dump.shards} for dump in (comparison.bench, comparison.target)
    ]
    return [
        _warning("not_compared", f"only the {side} has step {ranges(own - other)}")
        for side, own, other in (("benchmark", *steps), ("target", *steps[::-1]))
        if own - other
    ]


def _warning(code: str, text: str) -> dict[str, Any]:
    return {"code": code, "text": text}
