"""What an analyzer sees of the pipeline."""

from __future__ import annotations

from typing import Any, Protocol

Row = dict[str, Any]


class Database(Protocol):
    """Answers the questions under sql/ over the rank-scope answers of all shards."""

    def rows(self, name: str) -> list[Row]:
        """Return the rows of one question, in its order."""
