"""SQL over the tables of a dump.

crossrank query DUMP "SELECT rank, count(*) FROM tensors WHERE has_nan GROUP BY rank"
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import duckdb

from .errors import QueryError
from .loading import load_shards
from .options import share
from .output import strict_json
from .shards import open_dump
from .store import Store

PROMPT, CONTINUED = "crossrank> ", "      ...> "


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("dump", help="a dump of crossrank or msprobe, a folder or s3://...")
    parser.add_argument("sql", nargs="?", help="one SELECT")
    parser.add_argument("-i", "--interactive", action="store_true", help="a shell")
    parser.add_argument("--step", type=int, nargs="+", default=[], help="only these steps")
    parser.add_argument(
        "--format", choices=["table", "csv", "json", "parquet"], default="table", help="of the rows"
    )
    parser.add_argument("--out", type=Path, help="file for the rows; default: stdout")
    parser.add_argument("--memory", type=int, help="MiB")


def run(args: Namespace) -> int:
    """Run the command; return its exit code."""
    if bool(args.sql) == args.interactive:
        raise QueryError('give one SELECT, or -i for a shell: query DUMP "SELECT ..."')
    if args.format == "parquet" and not args.out and sys.stdout.isatty():
        raise QueryError("--format parquet is not for a terminal; add --out FILE")
    dump = open_dump(args.dump, args.step)
    with Store(share(args, 1), {}) as store:
        load_shards(store, dump.kind, dump.shards)
        store.lock(store.folder if "://" in str(args.dump) else Path(args.dump))
        if args.interactive:
            _shell(store, args)
        else:
            _deliver(ask(store, args.sql), args)
    return 0


def ask(store: Store, sql: str) -> duckdb.DuckDBPyRelation:
    """Return the rows of one SELECT from a user.

    Raises:
        QueryError: it is not one statement, not a SELECT, or fails.
    """
    try:
        statements = duckdb.extract_statements(sql)
        if len(statements) != 1:
            raise QueryError(f"{len(statements)} statements; give one SELECT")
        if statements[0].type != duckdb.StatementType.SELECT:
            raise QueryError(
                f"{statements[0].type.name} is refused: a dump is only read; give one SELECT"
            )
        return store.con.sql(sql)
    except duckdb.Error as error:
        raise QueryError(str(error)) from None


def _deliver(rows: duckdb.DuckDBPyRelation, args: Namespace) -> None:
    try:
        if args.format == "table":
            text = str(rows)
            args.out.write_text(text) if args.out else print(text, end="")
        elif args.format == "json":
            text = strict_json(rows.to_arrow_table().to_pylist()) + "\n"
            args.out.write_text(text) if args.out else sys.stdout.write(text)
        else:
            if args.format == "csv":
                _refuse_nested(rows)
            target = args.out or sys.stdout.buffer
            frame = rows.pl()
            frame.write_csv(target) if args.format == "csv" else frame.write_parquet(target)
    except duckdb.Error as error:
        raise QueryError(str(error)) from None


def _refuse_nested(rows: duckdb.DuckDBPyRelation) -> None:
    nested = [
        name
        for name, kind in zip(rows.columns, rows.types, strict=True)
        if kind.id in ("list", "struct", "map", "array", "union")
    ]
    if nested:
        raise QueryError(
            f"CSV cannot hold the lists in {', '.join(nested)}; ask for {nested[0]}::VARCHAR, "
            "or take --format json or parquet"
        )


def _shell(store: Store, args: Namespace) -> None:
    """Answer one SELECT after another, each ended by a semicolon, until the end of the input."""
    text = ""
    while True:
        try:
            text += input(CONTINUED if text else PROMPT) + "\n"
        except EOFError:
            return
        if text.rstrip().endswith(";"):
            try:
                _deliver(ask(store, text), args)
            except QueryError as error:
                print(error, file=sys.stderr)
            text = ""


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["query", *sys.argv[1:]]))
