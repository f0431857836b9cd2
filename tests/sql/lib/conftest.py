"""One connection that knows all macros."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.sqlfile import all_names, load


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        for file in map(load, all_names()):
            if file.scope == "lib" and not file.reads:
                con.execute(file.text)
        yield con


@pytest.fixture
def call(connection) -> Any:
    """Return what a macro gives: call("dtype_limit", "float16")."""

    def call(macro: str, *values: Any) -> Any:
        answer = duckdb.FunctionExpression(macro, *map(duckdb.ConstantExpression, values))
        return connection.sql("SELECT 1").select(answer).fetchall()[0][0]

    return call
