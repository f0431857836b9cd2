"""The run-scope side: the answers of all shards in one database, and what analyzers ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from .engine import Engine, Failure
from .progress import Progress
from .reduction import reduced
from .sqlfile import load
from .store import Store
from .tasks import WANTED, Batch, run_batch
from .work import Work


class RunDatabase:
    """Takes in what the workers found and answers run-scope questions; an analyzer's `Database`.

    Args:
        store: where the answers go.
        work: where finished batches go.
        engine: runs the batches.
        whole: makes the batches of some questions over the dump.
        quiet: no progress on stderr.
    """

    def __init__(
        self,
        store: Store,
        work: Work,
        engine: Engine,
        whole: Callable[[Sequence[str]], list[Batch]],
        *,
        quiet: bool = True,
    ) -> None:
        self.store = store
        self._work = work
        self._engine = engine
        self._whole = whole
        self._quiet = quiet

    def collect(self, questions: Sequence[str]) -> None:
        """Ask the rank-scope questions of every shard; one that fails is told of, not dropped."""
        self._take_in("shards read", questions, self._whole(questions))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of one question, in its order."""
        return self.store.rows(name)

    def look(self, name: str, calls: Iterable[tuple[int, int, int]]) -> list[dict[str, Any]]:
        """Return the rows of a question about some calls, asked where their shards lie."""
        wanted = set(calls)
        ranks = {(step, rank) for step, rank, _ in wanted}
        batches = []
        for batch in self._whole([name]):
            shards = tuple(s for s in batch.shards if (s.step, s.rank) in ranks)
            if shards:
                here = {(s.step, s.rank) for s in shards}
                asked = tuple(sorted(call for call in wanted if call[:2] in here))
                batches.append(replace(batch, shards=shards, wanted=asked))
        self._take_in("origins looked at", [name], batches)
        return self.rows(name)

    def _take_in(self, stage: str, questions: Sequence[str], batches: list[Batch]) -> None:
        """Run batches and put their answers into the tables of the questions.

        When a batch of several ranks fails, its ranks are tried one by one, so that a single bad
        shard is found. What still fails becomes a row of `shards` that says why.
        """
        for name in questions:
            self.store.declare(name)
        done, failed = self._run(stage, batches)
        several = [batch for batch, _ in failed if len(batch.split()) > 1]
        more, lost = self._run(stage, [single for b in several for single in b.split()])
        finished = done + more
        keys = [batch.key for batch in finished]
        if finished:
            keys = reduced(self._engine, self._work, keys, questions, finished[0].limits)
        for name in questions:
            self.store.take_in(name, self._work.files(keys, name))
        if "health/shards" in questions:
            for batch, failure in [(b, f) for b, f in failed if b not in several] + lost:
                self._add_failed(batch, failure)
        for name in questions:
            self.store.final(load(name).table)

    def _run(
        self, stage: str, batches: Sequence[Batch]
    ) -> tuple[list[Batch], list[tuple[Batch, Failure]]]:
        """Return the batches that are finished, some perhaps by an earlier run, and the others."""
        batches = [replace(batch, work=self._work) for batch in batches]
        waiting = [batch for batch in batches if not self._work.finished(batch.key)]
        results = self._engine.map(run_batch, waiting, lambda batch: batch.node)
        failed: list[tuple[Batch, Failure]] = []
        shards = sum(len(batch.shards) for batch in waiting)
        with Progress(stage, shards, quiet=self._quiet) as progress:
            for batch, result in results:
                if isinstance(result, Failure):
                    failed.append((batch, result))
                elif result:
                    self._work.put(batch.key, result)
                progress.done(len(batch.shards))
        return [batch for batch in batches if self._work.finished(batch.key)], failed

    def _add_failed(self, batch: Batch, failure: Failure) -> None:
        damage, fault = ("", failure.reason) if failure.ours else (failure.reason, None)
        self.store.add(
            "shards",
            [
                (s.step, s.rank, s.place, s.node, False, damage, "", 0, 0, 0, False, fault)
                for s in batch.shards
            ],
        )


class OneStore:
    """A single store that holds every shard itself: what `--explain` writes down.

    Args:
        store: with the shards loaded.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of one question, in its order."""
        return self.store.rows(name)

    def look(self, name: str, calls: Iterable[tuple[int, int, int]]) -> list[dict[str, Any]]:
        """Return the rows of a question about some calls."""
        self.store.fill("wanted", WANTED, sorted(set(calls)))
        return self.rows(name)
