"""What an analyzer sees of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

Row = dict[str, Any]


class Answers(Protocol):
    """Answers the questions under sql/."""

    def rows(self, name: str) -> list[Row]:
        """Return the rows of one question, in its order."""


class Database(Answers, Protocol):
    """Answers the questions under sql/ over the rank-scope answers of all shards."""

    def look(self, name: str, calls: Iterable[tuple[int, int, int]]) -> list[Row]:
        """Return the rows of a question about some calls, asked where their shards lie.

        Args:
            name: of the question; it reads them from the table `wanted`.
            calls: step, rank and seq.
        """
