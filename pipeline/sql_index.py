"""Writes sql/README.md, the list of all questions: python -m pipeline.sql_index"""

from __future__ import annotations

from itertools import groupby

from .sqlfile import SQL_ROOT, SqlFile, all_names, load

INDEX = SQL_ROOT / "README.md"

HEAD = """\
# Every question, as SQL

One statement a file; the header says what a row is, what it reads, and which columns it returns.
`scope` says where it runs: **rank** files run where one rank's shard lies and make it small,
**run** files join the small answers of all ranks, **lib** files are macros. A file's answer is a
table named like the file, and others read it under that name. `crossrank analyze DUMP --explain`
prints all of them, bound, in the order in which they run, as one script for a DuckDB shell.

This list is made by `python -m pipeline.sql_index`.
"""


def index_text() -> str:
    """Return the text of sql/README.md."""
    files = [load(name) for name in all_names()]
    sections = [HEAD]
    for folder, group in groupby(files, key=lambda file: file.name.partition("/")[0]):
        rows = [f"| [{f.name}]({f.name}.sql) | {f.scope} | {_cell(f)} |" for f in group]
        head = [f"## {folder}\n", "| file | scope | what it is |", "|---|---|---|"]
        sections.append("\n".join(head + rows))
    return "\n".join(f"{section}\n" for section in sections).rstrip() + "\n"


def _cell(file: SqlFile) -> str:
    return file.sentence.replace("|", "\\|")


if __name__ == "__main__":
    INDEX.write_text(index_text())
