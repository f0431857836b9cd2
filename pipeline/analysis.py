"""The way from a dump to the result of `analyze`: questions per rank, then over all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzers.nan_origin import RANK_QUESTIONS, nan_origin
from analyzers.shard_health import shard_health

from .database import RunDatabase
from .engine import Engine
from .errors import UsageError
from .loading import load_shards
from .settings import Limits
from .shards import Dump
from .store import Store
from .tasks import batches

QUESTIONS = ("health/shards", *RANK_QUESTIONS)


def run_store(
    dump: Dump, limits: Limits, *, nan_only: bool, explain: Callable[[str], None] | None = None
) -> Store:
    """Return an empty database for the run-scope side of one analysis.

    Args:
        dump: what is analysed.
        limits: what the database may use.
        nan_only: start from NaN alone.
        explain: called with each statement, bound, before it runs.
    """
    return Store(limits, {"nan_only": nan_only, "world_size": dump.world_size}, explain)


def analyze_dump(dump: Dump, store: Store, engine: Engine, worker: Limits) -> dict[str, Any]:
    """Return the result document of CONTRACT section 2; every table behind it is then in `store`.

    Args:
        dump: what is analysed.
        store: as `run_store` gives it.
        engine: closed when the ranks have been read.
        worker: what each task may use.
    """
    database = RunDatabase(store)
    try:
        work = batches(dump, QUESTIONS, worker, store.params, workers=engine.workers)
        database.collect(engine, work)
    finally:
        engine.close()
    return _judge(dump, database)


def explain_analysis(dump: Dump, limits: Limits, *, nan_only: bool) -> str:
    """Return every statement of an analysis, bound, as one script for a DuckDB shell.

    Raises:
        UsageError: no shell can read the dump.
    """
    if dump.kind == "msprobe":
        raise UsageError(
            f"{dump.path} is JSON of msprobe, which a DuckDB shell cannot read; write it as shards "
            "first (crossrank ingest SRC DUMP) and explain those"
        )
    statements: list[str] = []
    with run_store(dump, limits, nan_only=nan_only, explain=statements.append) as store:
        load_shards(store, dump.kind, dump.shards)
        for name in QUESTIONS:
            store.answer(name)
        _judge(dump, RunDatabase(store))
    return "\n".join(statements)


def _judge(dump: Dump, database: RunDatabase) -> dict[str, Any]:
    read, warnings = shard_health(database)
    found = nan_origin(database)
    judged = any(shard["judged"] for shard in database.rows("health/shards"))
    return {
        "tool": "analyze",
        "schema": 1,
        "dump": str(dump.path),
        "verdict": "found" if found["origins"] else "clean" if judged else "unknown",
        "read": read,
        **found,
        "warnings": warnings + found["warnings"],
    }
