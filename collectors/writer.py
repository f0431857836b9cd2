"""Collects one rank's calls and tensors of one step and never loses a whole part of them.

Rows leave memory every few seconds, after a number of rows, when the step ends, and at every exit
that can be caught: an exception, `atexit`, the end of a multiprocessing child, SIGTERM. A killed
process loses its last part at most.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing.util
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol

from .parts import PartWriter, RunInfo
from .schema import CALLS, TENSORS, Rows


class ShardWriter:
    """Takes calls with their tensors and writes them part by part; a context manager.

    Leaving the block normally marks the step complete. Leaving it by an exception, or dying inside
    it, writes what there is without that mark.

    Args:
        dump: folder of the whole dump; made when it is not there.
        step: training step, from 0.
        rank: global rank.
        run: written to run.json and into each footer.
        part_seconds: how long a row may stay in memory.
        part_rows: how many rows may stay in memory.
        before_part: called before each part is written, to add what was kept back so far.
    """

    def __init__(
        self,
        dump: Path,
        *,
        step: int,
        rank: int,
        run: RunInfo,
        part_seconds: float = 5.0,
        part_rows: int = 200_000,
        before_part: Callable[[], None] = lambda: None,
    ) -> None:
        self._before_part = before_part
        self._calls = Rows(CALLS)
        self._tensors = Rows(TENSORS)
        self._parts = PartWriter(dump, step=step, rank=rank, run=run)
        self._part_rows = part_rows
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._pid = os.getpid()
        self._error: Exception | None = None
        flush_at_exit(self)
        threading.Thread(target=self._flush_every, args=(part_seconds,), daemon=True).start()

    def add(self, call: Mapping[str, Any], tensors: Iterable[Mapping[str, Any]]) -> None:
        """Add one call and its tensors; columns that are not given are NULL."""
        if self._pid != os.getpid():
            return  # a forked child must not write its parent's rows
        if self._error:
            raise self._error
        with self._lock:
            for tensor in tensors:
                self._tensors.add(tuple(map(tensor.get, TENSORS.names)))
            self._calls.add(tuple(map(call.get, CALLS.names)))
            if len(self._calls) + len(self._tensors) >= self._part_rows:
                self.flush()

    def drop(self) -> None:
        """Count a call that could not be recorded."""
        self._parts.dropped += 1

    def flush(self) -> None:
        """Write the rows in memory as a part; nothing when there are none."""
        if self._pid != os.getpid():
            return
        self._before_part()
        with self._lock:
            if len(self._calls) or len(self._tensors):
                self._write(complete=False)

    def close(self, *, complete: bool = True) -> None:
        """Write the last part; `complete` says in its footer that the step is whole."""
        if self._pid != os.getpid():
            return
        if not self._closed.is_set():
            self._before_part()
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                if complete:
                    self._write(complete=True)
                else:
                    self.flush()

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(complete=kind is None)

    def _write(self, *, complete: bool) -> None:
        tables = {"calls": self._calls.table(), "tensors": self._tensors.table()}
        self._parts.write(tables, complete=complete)
        self._calls.clear()
        self._tensors.clear()

    def _flush_every(self, seconds: float) -> None:
        while not self._closed.wait(seconds):
            try:
                self.flush()
            except Exception as error:  # told to whoever adds the next call
                self._error = error
                return


class Open(Protocol):
    """What holds rows that are not on disk yet."""

    def flush(self) -> None:
        """Write them."""

    def close(self, *, complete: bool = True) -> None:
        """Write them, and end."""


_open: weakref.WeakSet[Open] = weakref.WeakSet()
_owner = 0


def flush_at_exit(writer: Open) -> None:
    """See to it that this process writes the rows of `writer` however it ends."""
    global _owner
    if _owner != os.getpid():  # first writer here; a forked child must not write its parent's rows
        _owner = os.getpid()
        _open.clear()
        atexit.register(_close_open, _owner)
        multiprocessing.util.Finalize(None, _close_open, args=(_owner,), exitpriority=100)
        if threading.current_thread() is threading.main_thread():
            _chain_sigterm(_owner)
    _open.add(writer)


def _close_open(owner: int) -> None:
    if owner == os.getpid():
        for writer in list(_open):
            with contextlib.suppress(OSError):  # the process ends anyway
                writer.close(complete=False)


def _chain_sigterm(owner: int) -> None:
    previous = signal.getsignal(signal.SIGTERM)

    def flush_then_pass_on(number: int, frame: FrameType | None) -> None:
        if owner == os.getpid():
            for writer in list(_open):
                with contextlib.suppress(OSError):
                    writer.flush()
        if callable(previous):
            previous(number, frame)
        elif previous != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, flush_then_pass_on)
