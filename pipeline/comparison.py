"""The way from two dumps to the result of `compare`: pairs of ranks first, then over all ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analyzers.run_diff import RANK_QUESTIONS, run_diff

from .database import OneStore
from .engine import Engine, Failure
from .errors import UsageError
from .pairing import ACROSS_RANKS, Name, RankPair, Side, compare_ranks, load_pair
from .progress import Progress
from .settings import Limits
from .shards import Dump
from .store import Store
from .wording import ranges, ranks_text
from .work import Work

_FRAMEWORK = re.compile(rb'"framework"\s*:\s*"(\w+)"')
HEAD = 4096
"""Bytes of a dump.json that its framework stands in."""

OURS = "; this is a mistake of crossrank, not of the file: please report it"

MINDSPORE = "mindspore"


@dataclass(frozen=True)
class Comparison:
    """What is held against each other.

    Args:
        bench, target: the dumps.
        noise: further runs of the benchmark's code.
        strict: every bit must be equal.
        counterparts: rank of the target -> ranks of the benchmark.
        renamed: names of the target that stand for others in the benchmark.
    """

    bench: Dump
    target: Dump
    noise: tuple[Dump, ...]
    strict: bool
    counterparts: Mapping[int, Sequence[int]]
    renamed: tuple[Name, ...] = ()

    @property
    def replicas(self) -> bool:
        """Tell whether ranks of one run are held against each other: what should be copies."""
        return self.bench.name == self.target.name and any(
            of != [rank] for rank, of in self.counterparts.items()
        )

    @property
    def params(self) -> dict[str, Any]:
        """Return values for the parameters of all questions."""
        cross = (framework(self.bench) == MINDSPORE) != (framework(self.target) == MINDSPORE)
        return {
            "cross": cross,
            "strict": self.strict,
            "replicas": self.replicas,
            "split": len(self.counterparts)
            != len({b for of in self.counterparts.values() for b in of})
            or any(len(of) > 1 for of in self.counterparts.values()),
            "nan_only": False,
            "world_size": self.target.world_size,
        }

    def tasks(
        self, limits: Limits | None, params: Mapping[str, Any], work: Work | None = None
    ) -> Iterator[RankPair]:
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
                    renamed=self.renamed,
                    params=params,
                    work=work,
                )


def compare_dumps(
    comparison: Comparison,
    store: Store,
    engine: Engine,
    worker: Limits | None,
    *,
    work: Path,
    quiet: bool = True,
) -> dict[str, Any]:
    """Return the result document of CONTRACT section 2; every table behind it is then in `store`.

    Args:
        comparison: what is compared.
        store: an empty database with the parameters of the comparison.
        engine: closed when the ranks have been read.
        worker: what each task may use.
        work: keeps what tasks have finished; `store` reads from it, and the caller removes it.
        quiet: no progress on stderr.
    """
    tasks = list(comparison.tasks(worker, store.params, Work.open(work)))
    warnings = [*comparison.bench.notes, *comparison.target.notes, *_not_compared(comparison)]
    try:
        warnings += _collect(tasks, store, engine, quiet=quiet)
    finally:
        engine.close()
    found = run_diff(OneStore(store), replicas=comparison.replicas)
    return {
        "tool": "compare",
        "schema": 1,
        "bench": comparison.bench.name,
        "target": comparison.target.name,
        "replicas": comparison.replicas,
        **found,
        "warnings": warnings + found["warnings"],
    }


def explain_comparison(comparison: Comparison, limits: Limits) -> str:
    """Return every statement about the first pair of ranks, bound, as a script for a DuckDB shell.

    Raises:
        UsageError: no shell can read one of the dumps.
    """
    for dump in (comparison.bench, comparison.target):
        if dump.kind == "msprobe":
            raise UsageError(
                f"{dump.name} is JSON of msprobe, which a DuckDB shell cannot read; write it as "
                "shards first (crossrank ingest SRC DUMP) and explain those"
            )
    statements: list[str] = []
    task = next(comparison.tasks(limits, comparison.params))
    task = replace(task, questions=(*RANK_QUESTIONS, *ACROSS_RANKS))
    with Store(limits, comparison.params, statements.append) as store:
        load_pair(store, task)
        for name in task.questions:
            store.answer(name)
        run_diff(OneStore(store))
    return "\n".join(statements)


def _collect(
    tasks: Sequence[RankPair], store: Store, engine: Engine, *, quiet: bool
) -> list[dict[str, Any]]:
    """Run the tasks and make their answers readable; return a warning for each that failed."""
    work = tasks[0].work
    assert work
    waiting = [task for task in tasks if not work.finished(task.key)]
    warnings = []
    with Progress("ranks compared", len(waiting), quiet=quiet) as progress:
        for task, result in engine.map(compare_ranks, waiting):
            if isinstance(result, Failure):
                code, blame = ("internal_error", OURS) if result.ours else ("shard_unreadable", "")
                text = f"{task}: {result.reason}{blame}"
                warnings.append(_warning(code, text, task.target.shards[0].rank))
            elif result:
                work.put(task.key, result)
            progress.done(1)
    done = [task for task in tasks if work.finished(task.key)]
    for name in (*RANK_QUESTIONS, *ACROSS_RANKS):
        files = work.files([task.key for task in done if name in task.questions], name)
        store.see(name, files)
    return warnings


def framework(dump: Dump) -> str:
    """Return what a dump was recorded with: pytorch, mindspore, ...; empty if it is not said."""
    if dump.kind == "shards":
        return str(dump.run.get("framework") or "")
    for shard in dump.shards:
        for name in ("dump.json", "debug.json"):
            if (shard.path / name).exists():
                with (shard.path / name).open("rb") as file:
                    match = _FRAMEWORK.search(file.read(HEAD))
                return match[1].decode() if match else ""
    return ""


def counterparts(
    bench: Dump, target: Dump, given: Sequence[tuple[int, int]] = ()
) -> dict[int, list[int]]:
    """Return rank of the target -> ranks of the benchmark that it is held against.

    By number when both have as many; else by blocks: with tensor parallelism innermost, as
    Megatron and DTensor meshes place it, ranks 0 to 3 together are what rank 0 alone is.

    Args:
        bench, target: the dumps.
        given: pairs of a rank of the target and one of the benchmark; no others are compared.

    Raises:
        UsageError: neither number of ranks is a multiple of the other, or a given rank is not
            there.
    """
    ours, theirs = (sorted({shard.rank for shard in dump.shards}) for dump in (target, bench))
    if given:
        return _given(given, [(target.name, ours), (bench.name, theirs)])
    if ours == theirs or len(ours) == len(theirs):
        return {a: [b] for a, b in zip(ours, theirs, strict=True)}
    small, large = sorted((len(ours), len(theirs)))
    if large % small:
        raise UsageError(
            f"{target.name} has {ranks_text(ours)}, {bench.name} has {ranks_text(theirs)}; one "
            "number of ranks must be a multiple of the other, or give --ranks TARGET:BENCH ..."
        )
    block = large // small
    if len(ours) == large:
        return {rank: [theirs[place // block]] for place, rank in enumerate(ours)}
    return {rank: theirs[place * block : (place + 1) * block] for place, rank in enumerate(ours)}


def renamed_names(files: Mapping[str, Path | None]) -> tuple[Name, ...]:
    """Return the names in mapping files, by kind: api, cell, layer, data.

    Raises:
        UsageError: a file cannot be read, or is no mapping of its kind.
    """
    given = {kind: file for kind, file in files.items() if file}
    if not given:
        return ()
    from .readers.mappings import MappingError, read_mapping

    try:
        return tuple(name for kind, file in given.items() for name in read_mapping(kind, file))
    except MappingError as error:
        raise UsageError(str(error)) from None


def _given(
    pairs: Sequence[tuple[int, int]], there: Sequence[tuple[str, Sequence[int]]]
) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pair in pairs:
        for rank, (name, ranks) in zip(pair, there, strict=True):
            if rank not in ranks:
                raise UsageError(f"{name} has no rank {rank}; it has {ranks_text(ranks)}")
        found.setdefault(pair[0], []).append(pair[1])
    return found


def _side(dump: Dump, rank: int) -> Side:
    return Side(dump.kind, tuple(shard for shard in dump.shards if shard.rank == rank))


def _not_compared(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a warning for each step that only one dump has."""
    bench, target = (
        {shard.step for shard in dump.shards} for dump in (comparison.bench, comparison.target)
    )
    alone = {"benchmark": bench - target, "target": target - bench}
    return [
        _warning("not_compared", f"only the {side} has step {ranges(steps)}")
        for side, steps in alone.items()
        if steps
    ]


def _warning(code: str, text: str, rank: int | None = None) -> dict[str, Any]:
    return {"code": code, "step": None, "rank": rank, "text": text}
