"""Runs tasks on this machine: one after the other, in threads, or in processes."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from itertools import islice

from collectors.errors import CrossrankError

from .engine import Failure, Item, Result, anywhere, failure_of
from .interrupts import interruptible

KEPT_BYTES = 32 * 2**20
"""Memory that a copy keeps for its next array: fresh pages cost as much as a pass over them."""


class LocalEngine:
    """Threads suit work that DuckDB does; processes suit work that Python does.

    Args:
        workers: tasks that run at the same time; one runs in the caller's own thread.
        processes: whether workers are processes.
        forked: whether these are copies of this one, made at once: they import nothing anew, and
            have none of its threads, so no database may be open yet. Only where `may_fork`.
    """

    name = "local"
    placed: Mapping[str, int] = {}

    def __init__(self, workers: int, *, processes: bool = False, forked: bool = False) -> None:
        self.workers = workers
        self._processes = processes
        self._pool: Executor | None = _forked(workers) if forked and workers > 1 else None

    def map(
        self,
        task: Callable[[Item], Result],
        items: Iterable[Item],
        where: Callable[[Item], str] = anywhere,
    ) -> Iterator[tuple[Item, Result | Failure]]:
        """Yield each item with its result, as they are done."""
        if self.workers == 1:
            for item in items:
                yield item, _attempt(task, item)
            return
        self._pool = self._pool or self._new_pool()
        waiting = iter(items)
        running: dict[Future[Result | Failure], Item] = {}
        while True:
            for item in islice(waiting, 2 * self.workers - len(running)):
                running[self._pool.submit(_attempt, task, item)] = item
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _result(future)

    def everywhere(
        self, task: Callable[[Item], Result], item: Item
    ) -> Iterator[tuple[str, Result | Failure]]:
        """Yield this machine with what the task gives here."""
        yield "this machine", _attempt(task, item)

    def close(self) -> None:
        """End the workers."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _new_pool(self) -> Executor:
        if not self._processes:
            return ThreadPoolExecutor(self.workers)
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        # not fork: this process has threads of DuckDB
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.workers, mp_context=context)


def may_fork() -> bool:
    """Tell whether a copy of this process would work: no other thread may hold a lock in it."""
    return sys.platform == "linux" and threading.active_count() == 1


def _forked(workers: int) -> Executor:
    """Return copies of this process that wait for tasks."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    gc.freeze()  # collecting would copy the memory of all that is shared
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, _begin)
    pool.submit(int)  # makes all of them, before this process starts threads
    return pool


def _begin() -> None:
    """Leave it to the parent to be interrupted, end when it is killed, and keep memory."""
    import ctypes
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    c = ctypes.CDLL(None)
    c.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if hasattr(c, "mallopt"):  # of glibc
        c.mallopt(-1, KEPT_BYTES)  # M_TRIM_THRESHOLD
        c.mallopt(-3, KEPT_BYTES)  # M_MMAP_THRESHOLD


def _attempt(task: Callable[[Item], Result], item: Item) -> Result | Failure:
    try:
        with interruptible():
            return task(item)
    except CrossrankError:
        raise  # the user's to mend: ends the run
    except Exception as error:
        return failure_of(error)


def _result(future: Future[Result | Failure]) -> Result | Failure:
    try:
        return future.result()
    except CrossrankError:
        raise
    except Exception as error:  # the process died: killed, out of memory
        return Failure(f"its worker process died ({error})")
