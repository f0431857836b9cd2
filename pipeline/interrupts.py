"""Ctrl-C, and SIGTERM, which `ray job stop` and schedulers send first, end a command alike."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def end_at_sigterm() -> None:
    """Take SIGTERM for Ctrl-C from now on."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for what DuckDB makes of it in the middle of a query."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise
