"""A database for one question: its tables as text in, its rows out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.checkpoint_compare import TABLES
from pipeline.loading import SHARD_FILES
from pipeline.pairing import ALIGNED, ERRORS, REAL_ERRORS, RENAMED, SIDE_QUESTIONS
from pipeline.rl_tables import ARRAYS, KEYS, PAIR_FACTS, PAIR_VALUES, SAMPLES, TOKENS
from pipeline.settings import Limits
from pipeline.sqlfile import load
from pipeline.store import Store
from pipeline.tasks import WANTED

OUTSIDE = {
    "shard_files": SHARD_FILES,
    "wanted": WANTED,
    "samples": SAMPLES,
    "keys": KEYS,
    "pair_facts": PAIR_FACTS,
    "pair_values": PAIR_VALUES,
    "arrays": ARRAYS,
    "tokens": TOKENS,
    "aligned": ALIGNED,
    "renamed": RENAMED,
    "noise": ERRORS,
    "real_errors": REAL_ERRORS,
    **TABLES,
}
"""Tables that Python fills, with their columns."""
GIVEN = {
    "calls": "schema/calls",
    "tensors": "schema/tensors",
    **{f"{side}_{t}": name for side in ("bench", "target") for t, name in SIDE_QUESTIONS.items()},
}
DEFAULTS = {
    "nan_only": False,
    "world_size": None,
    "cross": False,
    "strict": False,
    "split": False,
    "replicas": False,
    "match_by": "place",
    "one_run": False,
    "eps": 2.0**-8,
}

WORDS = {"-": None, "''": ""}


class Question:
    """One question and the tables it reads.

    db = Question("nan/onsets")
    db.table("living", "step rank seq entry", "0 1 5 birth", "0 1 3 received")
    assert db.rows("rank seq") == [(1, 3)]
    """

    def __init__(self, name: str, **params: Any) -> None:
        self.file = load(name)
        self._store = Store(Limits(1, 512), DEFAULTS | params)
        self._filled: set[str] = set()

    def table(self, table: str, columns: str, *rows: str) -> Question:
        """Fill a table that the question reads.

        Args:
            table: its name, as under `reads:` in the header.
            columns: names, separated by blanks; every other column is NULL.
            rows: values, separated by blanks; `-` is NULL, `''` the empty text, anything else as
                DuckDB casts text.
        """
        kinds = self._columns(table)
        names = columns.split()
        assert set(names) <= set(kinds), f"{table} has no {set(names) - set(kinds)}"
        self._create(table, kinds)
        for row in rows:
            values = [WORDS.get(word, word) for word in row.split()]
            assert len(values) == len(names), row
            given = dict(zip(names, values, strict=True))
            cells = [duckdb.ConstantExpression(given.get(n)).cast(k) for n, k in kinds.items()]
            self._store.con.sql("SELECT 1").select(*cells).insert_into(table)
        return self

    def rows(self, columns: str = "") -> list[tuple[Any, ...]]:
        """Return the answer; `columns` picks some. A table not filled is empty.

        The rows stand in the order that the question gives them, else sorted, NULL first.
        """
        for table in self.file.reads:
            if table not in self._filled:
                self._create(table, self._columns(table))
        names = columns.split() or list(self.file.returns)
        answer = self._store.rows(self.file.name)
        rows = [tuple(row[name] for name in names) for row in answer]
        if "\nORDER BY" in self.file.text:
            return rows
        return sorted(rows, key=lambda row: [(value is not None, value) for value in row])

    def _columns(self, table: str) -> dict[str, str]:
        assert table in self.file.reads, f"{self.file.name} does not read {table}"
        source = self.file.reads[table]
        if not source and table in OUTSIDE:
            return OUTSIDE[table]
        return load(source or GIVEN[table]).returns

    def _create(self, table: str, kinds: dict[str, str]) -> None:
        self._store.fill(table, kinds, [])
        self._filled.add(table)

    def close(self) -> None:
        self._store.__exit__()


@pytest.fixture
def ask() -> Iterator[Any]:
    """Open a question: ask("nan/onsets", nan_only=True)."""
    opened: list[Question] = []

    def question(name: str, **params: Any) -> Question:
        opened.append(Question(name, **params))
        return opened[-1]

    yield question
    for one in opened:
        one.close()
