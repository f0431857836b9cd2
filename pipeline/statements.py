"""SQL as it would be typed into a DuckDB shell, for `--explain`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .sqlfile import SqlFile, load


def bound(file: SqlFile, params: Mapping[str, Any]) -> str:
    """Return a question as statements to paste into a DuckDB shell, with values for parameters."""
    text = file.text
    for name, value in params.items():
        text = re.sub(rf"\${name}\b", _literal(value), text)
    macros = "".join(f"{load(macro).text.rstrip()};\n" for macro in file.uses)
    return f"{macros}CREATE TABLE {file.table} AS\n{text.rstrip()};\n"


def as_values(table: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> str:
    """Return statements that make a small table, row by row."""
    kinds = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    made = f"CREATE TABLE {table} ({kinds});\n"
    values = ",\n  ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return made + (f"INSERT INTO {table} VALUES\n  {values};\n" if values else "")


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
