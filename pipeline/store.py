"""A DuckDB database that answers the questions under sql/, with everything they need first."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from .errors import SqlFileError
from .settings import Limits
from .sqlfile import SqlFile, load

NAN_SAFE = "statistics_propagation,filter_pushdown,top_n"
"""Optimizers that DuckDB 2.0.1 loses NaN rows by when a Parquet file has float statistics."""


class Store:
    """One database: tables from outside, and the answers made of them, each computed once.

    Args:
        limits: threads and memory.
        params: values for the parameters of all questions.
        explain: called with each statement, bound, before it runs.
    """

    def __init__(
        self,
        limits: Limits,
        params: Mapping[str, Any],
        explain: Callable[[str], None] | None = None,
    ) -> None:
        self._spill = tempfile.TemporaryDirectory(prefix="crossrank-")
        self.con = duckdb.connect(
            config={
                "threads": limits.threads,
                "memory_limit": f"{limits.memory_mb}MiB",
                "temp_directory": self._spill.name,
                "parquet_metadata_cache": True,  # files are bound once for each question
                "arrow_large_buffer_size": True,  # 64-bit offsets: call stacks can exceed 2 GiB
            }
        )
        self.params = dict(params)
        self._explain = explain
        self._known: set[str] = set()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.con.close()
        self._spill.cleanup()

    def put(self, table: str, rows: pa.Table) -> None:
        """Make `table` of Arrow rows, or add them to it."""
        if self._explain:
            self._explain(_as_values(table, rows))
        relation = self.arrow(rows)
        if table in self._known:
            relation.insert_into(table)
        else:
            relation.create(table)
            self._known.add(table)

    def know(self, table: str) -> None:
        """Take a table as given that was made on the connection itself."""
        self._known.add(table)

    def view(self, table: str, relation: duckdb.DuckDBPyRelation) -> None:
        """Make `table` a view: its rows are read anew whenever they are asked for."""
        if self._explain:
            self._explain("CREATE VIEW " + table + " AS\n" + relation.sql_query().rstrip() + ";\n")
        relation.create_view(table)
        self._known.add(table)

    def arrow(self, rows: pa.Table) -> duckdb.DuckDBPyRelation:
        """Return Arrow rows as a relation; half floats, which DuckDB cannot take, as floats."""
        for place, column in enumerate(rows.schema):
            if pa.types.is_float16(column.type):
                rows = rows.set_column(place, column.name, rows.column(place).cast(pa.float32()))
        return self.con.from_arrow(rows)

    def parquet(self, files: Sequence[str], columns: pa.Table) -> duckdb.DuckDBPyRelation:
        """Return the rows of Parquet files, by column name.

        Args:
            files: paths with `step=<N>/rank=<R>` in them.
            columns: an empty table with the columns to give; one that no file has is NULL.
        """
        if not files:
            return self.arrow(columns)
        rows = self.con.read_parquet(list(files), union_by_name=True, hive_partitioning=True)
        missing = [name for name in columns.column_names if name not in rows.columns]
        nulls = [duckdb.ConstantExpression(None).alias(name) for name in missing]
        return rows.select(duckdb.StarExpression(), *nulls) if nulls else rows

    def be_nan_safe(self) -> None:
        """Read Parquet files without the optimizers that lose NaN rows by float statistics.

        DuckDB 2.0.1 prunes by minimum and maximum, which leave NaN out. Our own files carry no
        statistics on float columns; those of others may.
        """
        self.con.execute("SET disabled_optimizers = ?", [NAN_SAFE])

    def select(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return one question as a relation that is computed when it is asked for."""
        return self.con.sql(load(name).text)

    def answer(self, name: str) -> pa.Table:
        """Return the rows of one question, in its order."""
        self._ensure(name)
        return self.con.table(load(name).table).to_arrow_table()

    def declare(self, name: str) -> None:
        """Make an empty table for the rows of a question that are computed elsewhere."""
        file = load(name)
        columns = ", ".join(f'"{column}" {kind}' for column, kind in file.returns.items())
        self.con.execute("CREATE TABLE " + file.table + " (" + columns + ")")
        self._known.add(file.table)

    def lock(self, folder: Path) -> None:
        """Leave nothing but reading below `folder`: for SQL that a user wrote."""
        self.con.execute("SET allowed_directories = ?", [[str(folder.resolve())]])
        self.con.execute("SET enable_external_access = false")
        self.con.execute("SET lock_configuration = true")

    def tables(self) -> list[str]:
        """Return the names of all tables and answers, in order."""
        return sorted(self._known)

    def _ensure(self, name: str) -> None:
        file = load(name)
        if file.table in self._known:
            return
        for table, source in file.reads.items():
            if source:
                self._ensure(source)
            elif table not in self._known:
                raise SqlFileError(f"sql/{name}.sql reads {table}, which nobody gave")
        for macro in file.uses:
            self.con.execute(load(macro).text)
        params = {name: self.params[name] for name in file.params}
        if self._explain:
            self._explain(bound(file, params))
        self.con.execute("CREATE TABLE " + file.table + " AS\n" + file.text, params)
        self._known.add(file.table)


def bound(file: SqlFile, params: Mapping[str, Any]) -> str:
    """Return a question as statements to paste into a DuckDB shell, with values for parameters."""
    text = file.text
    for name, value in params.items():
        text = re.sub(rf"\${name}\b", _literal(value), text)
    macros = "".join(f"{load(macro).text.rstrip()};\n" for macro in file.uses)
    return f"{macros}CREATE TABLE {file.table} AS\n{text.rstrip()};\n"


def _as_values(table: str, rows: pa.Table) -> str:
    """Return a statement that makes a small table, row by row."""
    names = ", ".join(rows.column_names)
    lines = [", ".join(map(_literal, row.values())) for row in rows.to_pylist()]
    values = ",\n  ".join(f"({line})" for line in lines)
    return f"CREATE TABLE {table} AS\nSELECT * FROM (VALUES\n  {values}\n) AS t({names});\n"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
