"""One line a stage on stderr, with rate and time left; in a job's log, a new line now and then."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

LOG_SECONDS = 10.0
FORMAT = "{desc}: {n_fmt} of {total_fmt}, {rate_fmt}, {elapsed} so far, {remaining} left"


class Progress:
    """Counts what is done of a stage; as a context, it ends its line.

    Args:
        stage: what is counted.
        total: how many there are; nothing is shown when there are none.
        quiet: show nothing.
        unit: of the numbers; with one, they are written as kilo, mega, giga.
    """

    def __init__(self, stage: str, total: int, *, quiet: bool, unit: str = "") -> None:
        self._bar: tqdm[Any] | None = None
        if not quiet and total:
            from tqdm import tqdm

            live = sys.stderr.isatty()
            self._bar = tqdm(
                desc=stage,
                total=total,
                unit=unit,
                unit_scale=bool(unit),
                bar_format=FORMAT,
                file=sys.stderr if live else _Log(),
                mininterval=0.2 if live else LOG_SECONDS,
                miniters=1,
            )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def done(self, number: int) -> None:
        """Count some more."""
        if self._bar is not None:
            self._bar.update(number)


class _Log:
    """Turns a line that is written anew in place into lines of a log."""

    def write(self, text: str) -> None:
        words = text.strip()
        if words and ": 0 of " not in words:
            print(words, file=sys.stderr, flush=True)

    def flush(self) -> None:
        sys.stderr.flush()
