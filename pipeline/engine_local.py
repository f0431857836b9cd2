"""Runs tasks on this machine: one after the other in this process, or in several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice

from collectors.errors import CrossrankError

from .engine import Failure, Item, Result


class LocalEngine:
    """One worker runs in this process; several are processes with memory of their own."""

    name = "local"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def map(
        self, task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result | Failure]]:
        """Yield each item with its result, as they are done."""
        if self.workers == 1:
            for item in items:
                yield item, _attempt(task, item)
            return
        pool = self._open_pool()
        waiting = iter(items)
        running: dict[Future[Result | Failure], Item] = {}
        while True:
            for item in islice(waiting, 2 * self.workers - len(running)):
                running[pool.submit(_attempt, task, item)] = item
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _result(future)

    def close(self) -> None:
        """End the worker processes."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def _open_pool(self) -> ProcessPoolExecutor:
        # not fork: this process has threads of Arrow and DuckDB
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self.workers, mp_context=context)
        return self._pool


def _attempt(task: Callable[[Item], Result], item: Item) -> Result | Failure:
    try:
        return task(item)
    except CrossrankError:
        raise  # the user's to mend: ends the run
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def _result(future: Future[Result | Failure]) -> Result | Failure:
    try:
        return future.result()
    except CrossrankError:
        raise
    except Exception as error:  # the process died: killed, out of memory
        return Failure(f"its worker process died ({error})")
