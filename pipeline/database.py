"""The run-scope side: the answers of all shards in one database, and what analyzers ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine import Engine, Failure
from .store import Store
from .tasks import Batch, run_batch


class RunDatabase:
    """Takes in what the workers found and answers run-scope questions; an analyzer's `Database`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def collect(self, engine: Engine, batches: list[Batch]) -> None:
        """Ask the rank-scope questions of every shard; one that fails is told of, not dropped.

        When a batch of several ranks fails, its ranks are tried one by one, so that a single bad
        shard is found. What still fails becomes a row of `shards` that says why.
        """
        for name in batches[0].questions:
            self.store.declare(name)
        again: list[Batch] = []
        for batch, result in engine.map(run_batch, batches):
            if not isinstance(result, Failure):
                self._add(result)
            elif len(batch.split()) > 1:
                again += batch.split()
            else:
                self._add_failed(batch, result)
        for batch, result in engine.map(run_batch, again):
            if isinstance(result, Failure):
                self._add_failed(batch, result)
            else:
                self._add(result)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of one question, in its order."""
        return self.store.rows(name)

    def _add(self, result: Mapping[str, bytes]) -> None:
        for name, rows in result.items():
            self.store.unpack(name, rows)

    def _add_failed(self, batch: Batch, failure: Failure) -> None:
        self.store.add(
            "shards",
            [
                (s.step, s.rank, str(s.path), False, failure.reason, "", 0, 0, 0, False)
                for s in batch.shards
            ],
        )
