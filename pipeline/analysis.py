"""The way from a dump to the result of `analyze`: questions per rank, then over all ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analyzers.base import Database
from analyzers.nan_origin import RANK_QUESTIONS, nan_origin
from analyzers.shard_health import shard_health

from .database import OneStore, RunDatabase
from .engine import Engine
from .errors import UsageError
from .loading import load_shards
from .settings import Limits
from .shards import Dump
from .store import Store
from .tasks import Batch, batches
from .work import Work

RUN_MEMORY_MB = 512
"""What the tables of all ranks may take of memory; of more than 1,024 ranks, half a MiB each."""

QUESTIONS = ("health/shards", *RANK_QUESTIONS)


def run_store(
    dump: Dump, limits: Limits, *, nan_only: bool, explain: Callable[[str], None] | None = None
) -> Store:
    """Return an empty database for the run-scope side of one analysis.

    Args:
        dump: what is analysed.
        limits: what the database may use; it spills to disk early, since its tables grow with the
            number of ranks.
        nan_only: start from NaN alone.
        explain: called with each statement, bound, before it runs.
    """
    needed = max(RUN_MEMORY_MB, len({shard.rank for shard in dump.shards}) // 2)
    limits = replace(limits, memory_mb=min(limits.memory_mb, needed))
    return Store(limits, {"nan_only": nan_only, "world_size": dump.world_size}, explain)


def analyze_dump(
    dump: Dump,
    store: Store,
    engine: Engine,
    worker: Limits | None,
    *,
    work: Path | None = None,
    quiet: bool = True,
) -> dict[str, Any]:
    """Return the result document of CONTRACT section 2; every table behind it is then in `store`.

    Args:
        dump: what is analysed.
        store: as `run_store` gives it.
        engine: closed at the end.
        worker: what each task may use.
        work: keeps what tasks have finished, for a run that is started again; left to the caller
            to remove. Default: a temporary folder.
        quiet: no progress on stderr.
    """

    def whole(questions: Sequence[str]) -> list[Batch]:
        return batches(dump, questions, worker, store.params, workers=engine.workers)

    with ExitStack() as stack:
        stack.callback(engine.close)
        folder = work or Path(stack.enter_context(TemporaryDirectory(prefix="crossrank-")))
        database = RunDatabase(store, Work.open(folder), engine, whole, quiet=quiet)
        database.collect(QUESTIONS)
        return _judge(dump, database)


def explain_analysis(dump: Dump, limits: Limits, *, nan_only: bool) -> str:
    """Return every statement of an analysis, bound, as one script for a DuckDB shell.

    Raises:
        UsageError: no shell can read the dump.
    """
    if dump.kind == "msprobe":
        raise UsageError(
            f"{dump.name} is JSON of msprobe, which a DuckDB shell cannot read; write it as shards "
            "first (crossrank ingest SRC DUMP) and explain those"
        )
    statements: list[str] = []
    with run_store(dump, limits, nan_only=nan_only, explain=statements.append) as store:
        load_shards(store, dump.kind, dump.shards)
        for name in QUESTIONS:
            store.answer(name)
        _judge(dump, OneStore(store))
    return "\n".join(statements)


def _judge(dump: Dump, database: Database) -> dict[str, Any]:
    read, warnings = shard_health(database)
    found = nan_origin(database)
    judged = any(shard["judged"] for shard in database.rows("health/shards"))
    return {
        "tool": "analyze",
        "schema": 1,
        "dump": dump.name,
        "verdict": "found" if found["origins"] else "clean" if judged else "unknown",
        "read": read,
        **found,
        "warnings": [*dump.notes, *warnings, *found["warnings"]],
    }
