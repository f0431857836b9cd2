"""SQL of a user: answers in every format, and reaches nothing but the dump, reading only."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from pipeline import query
from pipeline.errors import QueryError
from pipeline.loading import load_shards
from pipeline.settings import Limits
from pipeline.shards import open_dump
from pipeline.store import Store

from ..dumps import Run, Value

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    run = Run(tmp_path / "dump", ranks=3)
    for rank in range(3):
        for number in range(rank + 1):
            made = Value(max=None, min=None, nan=8, shape=(2, 4)) if rank else Value(shape=(2, 4))
            run.rank(rank).call(f"Torch.log.{number}.forward", [Value()], [made])
    return run.write()


def locked(dump: Path) -> Store:
    store = Store(Limits(2, 512), {})
    found = open_dump(dump)
    load_shards(store, found.kind, found.shards)
    store.lock(dump)
    return store


def run(dump: Path, sql: str, **options: object) -> int:
    defaults = {"interactive": False, "step": [], "format": "table", "out": None, "memory": None}
    return query.run(Namespace(dump=dump, sql=sql, **(defaults | options)))


NAN_BY_RANK = "SELECT rank, count(*) AS n FROM tensors WHERE has_nan GROUP BY rank ORDER BY rank"


def test_table(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(dump, NAN_BY_RANK)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert [row[1::2] for row in rows][2:] == [["1", "2"], ["2", "3"]]


def test_json(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        dump,
        "SELECT shape, 'nan'::DOUBLE AS x, max FROM tensors WHERE has_nan LIMIT 1",
        format="json",
    )
    assert json.loads(capsys.readouterr().out) == [{"shape": [2, 4], "x": "nan", "max": None}]


def test_csv_and_parquet_files(dump: Path, tmp_path: Path) -> None:
    run(dump, NAN_BY_RANK, format="csv", out=tmp_path / "n.csv")
    text = (tmp_path / "n.csv").read_text()
    assert list(csv.reader(io.StringIO(text))) == [["rank", "n"], ["1", "2"], ["2", "3"]]
    run(dump, NAN_BY_RANK, format="parquet", out=tmp_path / "n.parquet")
    assert pq.read_table(tmp_path / "n.parquet").to_pydict() == {"rank": [1, 2], "n": [2, 3]}


def test_large_answer_has_all_rows(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(dump, "SELECT * FROM range(25000)", format="json")
    assert len(json.loads(capsys.readouterr().out)) == 25_000


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO calls VALUES (1)",
        "UPDATE calls SET seq = 0",
        "DELETE FROM calls",
        "DROP VIEW calls",
        "ATTACH 'x.db'",
        "COPY calls TO 'x.csv'",
        "EXPORT DATABASE 'x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '1GB'",
        "PRAGMA enable_profiling",
        "CALL pragma_version()",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP VIEW calls",
        "",
        "SELEC 1",
        "SELECT nothing FROM calls",
    ],
)
def test_anything_but_one_select_is_refused(dump: Path, sql: str) -> None:
    with locked(dump) as store, pytest.raises(QueryError):
        query.ask(store, sql).fetchall()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_blob('{dump}/../secret.csv')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_parquet('https://example.com/x.parquet')",
        "SELECT * FROM query('COPY calls TO ''{folder}/x.csv''')",
    ],
)
def test_other_files_and_the_network_are_out_of_reach(dump: Path, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("token\nabc\n")
    text = sql.format(secret=secret, dump=dump, folder=tmp_path)
    with locked(dump) as store, pytest.raises((QueryError, duckdb.Error)) as refusal:
        query.ask(store, text).fetchall()
    assert "abc" not in str(refusal.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dump", "secret.csv"]


def test_python_variables_are_out_of_reach(dump: Path) -> None:
    secret = pq.read_table(next(dump.rglob("calls-*.parquet")))
    assert len(secret) > 0
    with locked(dump) as store, pytest.raises(QueryError):
        query.ask(store, "SELECT * FROM secret").fetchall()


def test_the_dump_is_left_as_it_was(dump: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in dump.rglob("*")}
    run(dump, NAN_BY_RANK)
    assert {p: p.stat().st_mtime_ns for p in dump.rglob("*")} == before


def test_shell(dump: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.query", str(dump), "-i", "--format", "json"],
        cwd=ROOT,
        input="SELECT count(*)\n  AS n FROM calls;\nDROP VIEW calls;\nSELECT 7 AS x;\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"n": 6' in done.stdout
    assert '"x": 7' in done.stdout
    assert "DROP is refused" in done.stderr


def test_sql_or_shell_not_neither(dump: Path) -> None:
    with pytest.raises(QueryError, match="give one SELECT, or -i"):
        run(dump, "")


def test_query_larger_than_memory_spills(dump: Path) -> None:
    with locked(dump) as store:
        sql = "SELECT count(*) FROM (SELECT DISTINCT hash(i), i FROM range(20000000) t(i))"
        assert query.ask(store, sql).fetchall() == [(20_000_000,)]
