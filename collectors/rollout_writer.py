"""Writes RL data in a thread of its own: training hands values over and goes on.

A part is written every few seconds, after some bytes, when the step ends, and at every exit that
can be caught. Any process of any node may write into one dump: its files carry a name of their own.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .layout import FOOTER_PREFIX, FORMAT, ROLLOUT, RUN_FILE, SCHEMA_VERSION, UNFINISHED, shard_dir
from .parts import RunInfo, write_rollouts
from .rollout_values import Late, Row
from .writer import flush_at_exit

PART_BYTES = 256 * 2**20
"""Bytes that wait in memory before a part is written."""
MOST_WAITING = 4 * 2**30
"""Bytes of values that may wait; beyond, values are dropped, counted, and told of."""

Step = tuple[int, int]


class RolloutWriter:
    """Takes values and writes them as `step=<N>/rank=<R>/rollout-<writer>-<part>.parquet`.

    Args:
        dump: folder of the whole dump; made when it is not there.
        run: written to run.json.
        part_seconds: how long a value may stay in memory.
        folders: writes a row in another form instead, see `rollout_folders`; None: shards.
    """

    def __init__(
        self,
        dump: Path,
        run: RunInfo,
        *,
        part_seconds: float = 5.0,
        folders: Callable[[Path, Step, Row], None] | None = None,
    ) -> None:
        self._dump, self._run, self._folders = dump, run, folders
        self._name = uuid.uuid4().hex[:8]
        self._seconds = part_seconds
        self._queue: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._parts: dict[Step, int] = {}
        self.dropped = 0
        self._told = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        flush_at_exit(self)

    def add(
        self, step: int, rank: int, key: str, micro: int, rows: Iterable[Late], size: int
    ) -> None:
        """Take the rows of one value of about `size` bytes; returns at once."""
        if self._pid != os.getpid():
            return  # a forked child must not write for its parent
        with self._lock:
            if self._waiting + size > MOST_WAITING:
                self.dropped += 1
                self._tell(f"{key} of step {step} was dropped: the disk is slower than training")
                return
            self._waiting += size
        self._queue.put(("value", (step, rank), key, micro, list(rows), size))

    def end_step(self, step: int, rank: int) -> None:
        """Mark what this process saved of a step as whole; returns at once."""
        self._queue.put(("step", (step, rank)))

    def flush(self) -> None:
        """Write what there is; returns when it is on disk."""
        self._ask("flush")

    def close(self, *, complete: bool = True) -> None:
        """Write what there is, and end."""
        self._ask("close")

    def _ask(self, what: str) -> None:
        if self._pid == os.getpid() and self._thread.is_alive():
            done = threading.Event()
            self._queue.put((what, done))
            while not done.wait(0.1) and self._thread.is_alive():
                pass

    def _work(self) -> None:
        held: dict[Step, list[Row]] = {}
        size, since = 0, time.monotonic()
        while True:
            try:
                item = self._queue.get(timeout=self._seconds)
            except queue.Empty:
                item = ("idle",)
            try:
                if item[0] == "value":
                    size += self._hold(held, *item[1:])
                elif item[0] == "step":
                    self._write(item[1], held.pop(item[1], []), complete=True)
                if item[0] != "step" and (
                    item[0] != "value"
                    or size > PART_BYTES
                    or time.monotonic() - since > self._seconds
                ):
                    for step in list(held):
                        self._write(step, held.pop(step), complete=False)
                    size, since = 0, time.monotonic()
            except Exception as error:  # never training's problem
                self.dropped += 1
                self._tell(f"RL data could not be written: {type(error).__name__}: {error}")
            if item[0] in ("flush", "close"):
                item[1].set()
            if item[0] == "close":
                return

    def _hold(
        self,
        held: dict[Step, list[Row]],
        step: Step,
        key: str,
        micro: int,
        rows: list[Late],
        size: int,
    ) -> int:
        with self._lock:
            self._waiting -= size
        for late in rows:
            row = {"micro_step": micro, "key": key, **late()}
            if self._folders:
                self._folders(self._dump, step, row)
            else:
                held.setdefault(step, []).append(row)
        return size

    def _write(self, step: Step, rows: list[Row], *, complete: bool) -> None:
        """Write one part: a row group for each key, so that one key can be read alone."""
        if self._folders or not (rows or complete):
            return
        if not (self._dump / RUN_FILE).exists():
            self._run.write(self._dump)
        folder = shard_dir(self._dump, *step)
        folder.mkdir(parents=True, exist_ok=True)
        number = self._parts.get(step, 0)
        self._parts[step] = number + 1
        final = folder / f"{ROLLOUT}-{self._name}-{number:05d}.parquet"
        temporary = final.with_name(final.name + UNFINISHED)
        write_rollouts(temporary, rows, self._footer(step, complete=complete))
        temporary.replace(final)

    def _footer(self, step: Step, *, complete: bool) -> dict[str, str]:
        footer = {
            "format": FORMAT,
            "schema_version": str(SCHEMA_VERSION),
            "run_id": self._run.run_id,
            "step": str(step[0]),
            "rank": str(step[1]),
            "dropped": str(self.dropped),
            "complete": str(complete).lower(),
        }
        return {FOOTER_PREFIX + key: value for key, value in footer.items()}

    def _tell(self, text: str) -> None:
        if not self._told:
            self._told = True
            warnings.warn(f"crossrank: {text}; the training goes on", RuntimeWarning, stacklevel=3)
