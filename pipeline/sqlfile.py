"""Loads the questions under sql/: one statement a file, with a header that says what a row is.

    -- nan/onsets: one row per step and rank ...
    --
    -- why it works and what can fool it
    --
    -- scope:   rank | run | lib
    -- uses:    lib/dtype_limit                  macros it calls (optional)
    -- reads:   entries   what a row is, from nan/entries
    -- params:  $nan_only BOOLEAN   meaning; or none
    -- returns: step BIGINT, rank BIGINT, ...    exactly, in order
    -- merge:   distinct                         equal rows of several tasks are one (optional)

`from nan/entries` names the file whose result a table is; one without it comes from outside.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from .errors import SqlFileError

SQL_ROOT = Path(__file__).resolve().parent.parent / "sql"

_FIELD = re.compile(r"--\s+(scope|uses|reads|params|returns|merge):\s*(.*)")
_READ = re.compile(r"(\w+)\s{2,}.*?(?:from (\w+/\w+))?$", re.S)
_PARAM = re.compile(r"\$(\w+)\s+([A-Z]+)")
_COLUMN = re.compile(r"(\w+) ((?:STRUCT\([^)]*\)|\w+)(?:\[\])*)")


@dataclass(frozen=True)
class SqlFile:
    """One question.

    Args:
        name: folder and file, `nan/onsets`; the table of its rows is called by the last part.
        sentence: what a row is.
        scope: rank (on one rank's shard, where it lies), run (over all ranks), lib (a macro).
        uses: names of the macros it calls.
        reads: table -> the file whose result it is; None for a table given from outside.
        params: parameter -> SQL type.
        returns: column -> SQL type, in order.
        merge: `distinct` where one is kept of equal rows that several tasks give; else nothing.
        text: the whole file; runs as it stands.
    """

    name: str
    sentence: str
    scope: str
    uses: tuple[str, ...]
    reads: dict[str, str | None]
    params: dict[str, str]
    returns: dict[str, str]
    merge: str
    text: str

    @property
    def table(self) -> str:
        """Return the name of the table that holds its rows."""
        return self.name.rpartition("/")[2]


def all_names() -> list[str]:
    """Return the name of every file under sql/, in order."""
    return sorted(
        str(path.relative_to(SQL_ROOT).with_suffix("")) for path in SQL_ROOT.glob("*/*.sql")
    )


@cache
def load(name: str) -> SqlFile:
    """Read one file.

    Raises:
        SqlFileError: it does not exist, or its first line does not name it.
    """
    path = SQL_ROOT / f"{name}.sql"
    if not path.is_file():
        raise SqlFileError(f"sql/{name}.sql does not exist; known: {', '.join(all_names())}")
    text = path.read_text()
    first, fields = _header(text)
    if not first.startswith(f"{name}: "):
        raise SqlFileError(f"sql/{name}.sql: the first line must begin with `-- {name}: `")
    return SqlFile(
        name=name,
        sentence=first.removeprefix(f"{name}: "),
        scope=fields.get("scope", ""),
        uses=tuple(re.findall(r"\w+/\w+", fields.get("uses", ""))),
        reads=_reads(fields.get("reads", "")),
        params=dict(_PARAM.findall(fields.get("params", ""))),
        returns=dict(_COLUMN.findall(" ".join(fields.get("returns", "").split()))),
        merge=fields.get("merge", ""),
        text=text,
    )


@cache
def digest() -> str:
    """Return a hash of all files: other SQL may give other answers."""
    texts = [(name, load(name).text) for name in all_names()]
    return hashlib.blake2b(repr(texts).encode(), digest_size=12).hexdigest()


def check(file: SqlFile) -> None:
    """Compare the header of a file with its statement; parsing takes longer than many questions.

    Raises:
        SqlFileError: the scope is unknown, or the statement is not what the header promises.
    """
    where = f"sql/{file.name}.sql"
    if file.scope not in ("rank", "run", "lib"):
        raise SqlFileError(f"{where}: scope must be rank, run or lib, not {file.scope!r}")
    if file.merge not in ("", "distinct"):
        raise SqlFileError(f"{where}: merge must be distinct or left out, not {file.merge!r}")
    try:
        statements = duckdb.extract_statements(file.text)
    except duckdb.Error as error:
        raise SqlFileError(f"{where}: {error}") from None
    if len(statements) != 1:
        raise SqlFileError(f"{where}: {len(statements)} statements, expected exactly one")
    kind = duckdb.StatementType.CREATE if file.scope == "lib" else duckdb.StatementType.SELECT
    if statements[0].type != kind:
        raise SqlFileError(f"{where}: a {statements[0].type.name} statement, expected {kind.name}")
    used = set(statements[0].named_parameters)
    if used != set(file.params):
        raise SqlFileError(
            f"{where}: the header declares parameters {sorted(file.params)}, "
            f"the statement uses {sorted(used)}"
        )


def _header(text: str) -> tuple[str, dict[str, str]]:
    """Return the first sentence and the fields, each with its continuation lines."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line)
    sentence: list[str] = []
    while lines and lines[0].strip() != "--":
        sentence.append(lines.pop(0)[2:].strip())
    fields: dict[str, str] = {}
    current = ""
    for line in lines:
        if match := _FIELD.match(line):
            current, rest = match[1], match[2]
            fields[current] = rest
        elif current:
            fields[current] += "\n" + line[2:].strip()
    return " ".join(sentence), fields


def _reads(text: str) -> dict[str, str | None]:
    """Return table -> source; a line that does not begin with a table name continues the last."""
    entries: list[str] = []
    for line in text.splitlines():
        if re.match(r"\w+\s{2,}", line):
            entries.append(line)
        elif entries:
            entries[-1] += " " + line
    return {match[1]: match[2] for entry in entries if (match := _READ.match(entry))}
