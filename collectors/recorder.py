"""Puts calls of one rank into shards: numbers them, keeps their rows together, never raises."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from .errors import CrossrankError
from .layout import shard_dir
from .parts import RunInfo
from .writer import ShardWriter

DEFERRED = "deferred"
"""Key under which the row of a tensor keeps numbers that are still on a device."""

MOST_WAITING = 1000
"""Calls that wait for one copy from a device."""


class Recorder:
    """Everything that is recorded of this process.

    An error of ours turns recording off, once, with a warning; the training goes on.

    Args:
        dump: folder of the whole dump.
        rank: global rank.
        run: what all ranks share.
        finish: brings the numbers of rows over that are still on a device, under DEFERRED.
        unseen: a context in which no interception of ours takes place.
    """

    def __init__(
        self,
        dump: Path,
        rank: int,
        run: RunInfo,
        finish: Callable[[Sequence[dict[str, Any]]], None],
        unseen: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._unseen = unseen
        self._dump, self._rank, self._run, self._finish = dump, rank, run, finish
        self._seqs = itertools.count()
        self._writer: ShardWriter | None = None
        self._waiting: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self._deferred = False
        self.lock = threading.RLock()
        self.thread = threading.local()
        self.failures = 0
        self.on = False
        _off_in_children(self)

    def begin_step(self, step: int) -> None:
        """Go on with the calls of one step."""
        if self._writer is None and not self.failures:
            self.on = True
            self._writer = self.guarded(self._open, step)
        self.on = self._writer is not None and not self.failures

    def _open(self, step: int) -> ShardWriter:
        if any(shard_dir(self._dump, step, self._rank).glob("*.parquet")):
            raise CrossrankError(
                f"{self._dump} already holds step {step} of rank {self._rank}; give each run a "
                "folder of its own"
            )
        return ShardWriter(
            self._dump,
            step=step,
            rank=self._rank,
            run=self._run,
            before_part=self._settle,
        )

    def end_step(self) -> None:
        """Mark the step whole, and write it."""
        if self._writer:
            self.on = True
            self.guarded(self._writer.close, complete=not self.failures)
            self._writer = None
        self.on = False

    def next_seq(self) -> int:
        """Return the place of the next call in the rank's own order."""
        return next(self._seqs)

    def add(self, call: dict[str, Any], tensors: list[dict[str, Any]]) -> None:
        """Write down one call with its tensors; their numbers may still be on a device."""
        with self.lock:
            self._waiting.append((call, tensors))
            self._deferred = self._deferred or any(DEFERRED in row for row in tensors)
            if not self._deferred or len(self._waiting) >= MOST_WAITING:
                self._settle()

    def _settle(self) -> None:
        """Hand over the calls that wait, once the numbers of all are here."""
        with self.lock:
            waiting, self._waiting, self._deferred = self._waiting, [], False
            rows = [row for _, tensors in waiting for row in tensors if DEFERRED in row]
            if rows:
                with self._unseen():
                    self._finish(rows)
            for call, tensors in waiting:
                if self._writer:
                    self._writer.add(call, tensors)

    def guarded(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return what our own code gives; None when it fails, and nothing is recorded from then on.

        While it runs, what it calls itself is not recorded.
        """
        if not self.on or self.busy:
            return None
        self.thread.busy = True
        try:
            with self._unseen():
                return work(*args, **kwargs)
        except Exception as error:
            self._fail(error)
            return None
        finally:
            self.thread.busy = False

    @property
    def busy(self) -> bool:
        """Tell whether our own code runs in this thread."""
        return getattr(self.thread, "busy", False)

    def _fail(self, error: Exception) -> None:
        self.on = False
        self.failures += 1
        if self._writer:
            self._writer.drop()
        known = isinstance(error, CrossrankError)
        why = str(error) if known else f"{type(error).__name__}: {error}; please report this"
        text = f"crossrank stopped recording on rank {self._rank}, the training goes on: {why}"
        try:
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        except RuntimeWarning:  # warnings are errors here, and an error would end the training
            print(text, file=sys.stderr)


def _off_in_children(recorder: Recorder) -> None:
    """See to it that a forked process records nothing: a data loader's worker is no rank."""
    known = weakref.ref(recorder)

    def turn_off() -> None:
        parent = known()
        if parent:
            parent.on = False

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=turn_off)
