"""A DuckDB database that answers the questions under sql/, with everything they need first."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from .errors import InternalError, SqlFileError
from .settings import Limits
from .sqlfile import load
from .statements import as_values, bound

if TYPE_CHECKING:
    import pyarrow as pa

NAN_SAFE = "statistics_propagation,filter_pushdown,top_n"
"""Optimizers that DuckDB 2.0.1 loses NaN rows by when a Parquet file has float statistics."""

SAVED = " TO ? (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
"""Level 1 takes two thirds of the time of 3, and a fiftieth more bytes."""

ROWS_AT_ONCE = 256
"""Of tables that are filled from Python; a statement for each row takes twenty times as long."""

PIECE_ROWS = 16_384
"""Of Arrow rows: what one thread scans at a time; each piece costs a little."""

MACHINE = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.InterruptException)
"""Errors of files, disks and memory, whatever the SQL is."""


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
        self.folder = Path(tempfile.mkdtemp(prefix="crossrank-"))
        """A folder that is gone when the store is closed, or emptied."""
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.con = duckdb.connect(
            config={
                "threads": limits.threads,
                "memory_limit": f"{limits.memory_mb}MiB",
                "temp_directory": str(self.folder),
                "arrow_large_buffer_size": True,  # 64-bit offsets: call stacks can exceed 2 GiB
                "python_enable_replacements": False,  # SQL must not see Python's variables
            }
        )
        # each question that reads a view of files binds all of them anew
        self.con.execute("SET parquet_metadata_cache = true")
        self.params = dict(params)
        self.when_final: Callable[[str], None] | None = None
        """Called with each table whose rows are all there."""
        self._explain = explain
        self._known: set[str] = set()
        self._macros: set[str] = set()
        self._schema = "main"
        self._views: list[str] = []
        self._seen: dict[str, list[str]] = {}  # table -> the Parquet files that it is a view of

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.con.close()
        self._remove()

    @contextmanager
    def anew(self, params: Mapping[str, Any]) -> Iterator[None]:
        """Be as new inside of this, with other parameters."""
        whole, self.params, self._known, self._seen = self.folder, dict(params), set(), {}
        self._views = []  # macros stay: they are the connection's
        self._run("ATTACH ':memory:' AS anew")
        self._run("USE anew")
        self._run("RESET disabled_optimizers")
        with tempfile.TemporaryDirectory(dir=whole) as folder:
            self.folder = Path(folder)
            yield
        self.folder = whole
        self._run("USE memory")
        self._run("DETACH anew")

    def fill(self, table: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> None:
        """Make a small table.

        Args:
            table: its name.
            columns: column -> SQL type, in order.
            rows: a value for each column.
        """
        values = list(rows)
        self._create(table, columns)
        self.add(table, values)
        if self._explain:
            self._explain(as_values(table, columns, values))

    def add(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Add a few rows to a table."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            marks = ", ".join(["(" + ", ".join("?" * len(some[0])) + ")"] * len(some))
            values = [value for row in some for value in row]
            self.con.execute("INSERT INTO " + table + " VALUES " + marks, values)

    def add_arrow(self, table: str, rows: pa.Table) -> None:
        """Add Arrow rows, with the columns of a table that is there, to it."""
        self.con.from_arrow(rows.combine_chunks()).insert_into(table)  # each chunk takes long

    def keep(self, table: str, columns: Mapping[str, str], rows: pa.Table) -> None:
        """Make Arrow rows readable as a table, without a copy of them.

        Args:
            table: its name.
            columns: column -> SQL type, in order: those of the rows.
            rows: stay in memory until the store is closed.
        """
        if self._explain:
            self._explain(as_values(table, columns, []))
        pieces = rows.combine_chunks().to_batches(max_chunksize=PIECE_ROWS)
        self.con.from_arrow(rows.from_batches(pieces, rows.schema)).create_view(table)
        self._known.add(table)

    @contextmanager
    def inside(self, schema: str) -> Iterator[None]:
        """Make tables and answers in a schema of their own, beside those of the same names."""
        known, self._known = self._known, set()
        self._run("CREATE SCHEMA " + schema)
        self._run("SET search_path = '" + schema + ",main'")
        self._schema = schema
        try:
            yield
        finally:
            self._schema = "main"
            self._run("SET search_path = 'main'")
            self._known = known

    def bring(self, schema: str, name: str, table: str) -> None:
        """Make the answer to a question in a schema readable as `table`."""
        self._run("CREATE VIEW " + table + " AS FROM " + schema + "." + load(name).table)
        self._known.add(table)

    def view(self, table: str, relation: duckdb.DuckDBPyRelation) -> None:
        """Make `table` a view: its rows are read anew whenever they are asked for."""
        if self._explain:
            self._explain("CREATE VIEW " + table + " AS\n" + relation.sql_query().rstrip() + ";\n")
        relation.create_view(table)
        self._views.append(self._schema + "." + table)
        self._known.add(table)

    def arrow(self, rows: pa.Table) -> duckdb.DuckDBPyRelation:
        """Return Arrow rows as a relation; half floats, which DuckDB cannot take, as floats."""
        for place, column in enumerate(rows.schema):
            if str(column.type) == "halffloat":
                rows = rows.set_column(place, column.name, rows.column(place).cast("float32"))
        return self.con.from_arrow(rows)

    def be_nan_safe(self) -> None:
        """Read Parquet files without the optimizers that lose NaN rows by float statistics.

        DuckDB 2.0.1 prunes by minimum and maximum, which leave NaN out. Our own files carry no
        statistics on float columns; those of others may.
        """
        self.con.execute("SET disabled_optimizers = ?", [NAN_SAFE])

    def select(self, name: str, **params: Any) -> duckdb.DuckDBPyRelation:
        """Return one question as a relation that is computed when it is asked for."""
        return self.con.sql(load(name).text, params=params or None)

    def answer(self, name: str) -> None:
        """Compute one question, and what it needs first, as a table; nothing when it is there."""
        file = load(name)
        if file.table in self._known:
            return
        for table, source in file.reads.items():
            if source:
                self.answer(source)
            elif table not in self._known:
                raise SqlFileError(f"sql/{name}.sql reads {table}, which nobody gave")
        for macro in file.uses:
            if macro not in self._macros:
                self.con.execute(load(macro).text)
                self._macros.add(macro)
        params = {name: self.params[name] for name in file.params}
        if self._explain:
            self._explain(bound(file, params))
        try:
            self.con.execute("CREATE TABLE " + file.table + " AS\n" + file.text, params)
        except MACHINE:
            raise
        except duckdb.Error as error:
            self._reread()  # raises where what was given is to blame
            raise InternalError(
                f"sql/{name}.sql fails on data that can be read: {error}"
            ) from error
        self._known.add(file.table)
        self.final(file.table)

    def final(self, table: str) -> None:
        """Say that the rows of a table are all there."""
        if self.when_final and self._schema == "main":
            self.when_final(table)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of one question, in its order."""
        self.answer(name)
        answer = self.con.table(load(name).table)
        return [dict(zip(answer.columns, row, strict=True)) for row in answer.fetchall()]

    def columns_of(self, name: str) -> dict[str, Any]:
        """Return the rows of one question as column -> numpy array; empty when there are none."""
        self.answer(name)
        answer = self.con.table(load(name).table)
        return answer.fetchnumpy() if answer.limit(1).fetchall() else {}

    def pack(self, name: str) -> bytes:
        """Return the rows of one question as a Parquet file."""
        self.answer(name)
        file = self.folder / "packed.parquet"
        self.save(load(name).table, file)
        return file.read_bytes()

    def save(self, table: str, file: Path, con: duckdb.DuckDBPyConnection | None = None) -> None:
        """Write a table as a Parquet file; in another thread, through a connection of its own."""
        if len(self._seen.get(table, ())) == 1:
            shutil.copyfile(self._seen[table][0], file)
            return
        (con or self.con).execute("COPY " + table + SAVED, [str(file)])

    def declare(self, name: str) -> None:
        """Make an empty table for the rows of a question that are computed elsewhere."""
        self._create(load(name).table, load(name).returns)

    def take_in(self, name: str, files: Sequence[str]) -> None:
        """Add the rows of Parquet files that `pack` made to a declared table."""
        if files:
            self._packed(name, files).insert_into(load(name).table)

    def see(self, name: str, files: Sequence[str]) -> None:
        """Make the rows of Parquet files that `pack` made readable, without taking them in."""
        if files:
            self._seen[load(name).table] = list(files)
            self.view(load(name).table, self._packed(name, files))
        else:
            self.declare(name)

    def _packed(self, name: str, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
        rows = self.con.read_parquet(list(files))
        return rows.distinct() if load(name).merge == "distinct" else rows

    def lock(self, folder: Path) -> None:
        """Leave nothing but reading below `folder`: for SQL that a user wrote."""
        self.con.execute("SET allowed_directories = ?", [[str(folder.resolve())]])
        self.con.execute("SET enable_external_access = false")
        self.con.execute("SET lock_configuration = true")

    def tables(self) -> list[str]:
        """Return the names of all tables and answers, in order."""
        return sorted(self._known)

    def _reread(self) -> None:
        """Read every column of what lies in files."""
        for view in self._views:
            self.con.table(view).aggregate("bit_xor(hash(COLUMNS(*)))").fetchall()

    def _run(self, statement: str) -> None:
        if self._explain:
            self._explain(statement + ";\n")
        self.con.execute(statement)

    def _create(self, table: str, columns: Mapping[str, str]) -> None:
        kinds = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        self.con.execute("CREATE TABLE " + table + " (" + kinds + ")")
        self._known.add(table)
