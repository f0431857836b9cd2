"""Every file under sql/ keeps to the form that its header promises."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import pipeline.loading
from analyzers import (
    checkpoint_diff,
    nan_origin,
    rl_causes,
    rl_diff,
    rl_notes,
    rl_setting,
    run_diff,
    shard_health,
)
from collectors.parts import write_parquet
from collectors.schema import CALLS
from pipeline import msprobe_compare, pairing, sqlfile
from pipeline.errors import SqlFileError
from pipeline.settings import Limits
from pipeline.sql_index import INDEX, index_text
from pipeline.sqlfile import SQL_ROOT, SqlFile, all_names, check, load
from pipeline.store import Store

from .conftest import DEFAULTS as PARAMS
from .conftest import GIVEN as SHARDS
from .conftest import OUTSIDE

FILES = [load(name) for name in all_names()]
QUESTIONS = [file for file in FILES if file.scope != "lib"]
ALWAYS_A_ROW = (
    "health/expected_ranks", "rl/identities", "rl/counts", "rl/mask_shapes", "diff/fusions",
)  # fmt: skip

GIVEN = SHARDS | {"call_files": "schema/calls", "tensor_files": "schema/tensors"}
"""Tables from outside, with the columns of these questions."""


def asked_for() -> set[str]:
    """Return the questions whose rows leave the database: to the run's, or to an analyzer."""
    asked = {"health/shards", *nan_origin.RANK_QUESTIONS, *run_diff.RANK_QUESTIONS}
    asked |= {"checkpoint/layers", "rl/pairs", "rl/worst_samples"}
    others = (checkpoint_diff, msprobe_compare, nan_origin, pairing, run_diff, shard_health)
    for module in (*others, rl_causes, rl_diff, rl_notes, rl_setting):
        source = Path(str(module.__file__)).read_text()
        words = r"(?:rows|look|_of|columns_of|answer)"
        asked |= set(re.findall(words + r'\((?:db, )?"(\w+/\w+)"', source))
    return asked


def ids(file: SqlFile) -> str:
    return file.name


@pytest.mark.parametrize("file", QUESTIONS, ids=ids)
def test_returns_what_the_header_says_on_empty_tables(file: SqlFile, tmp_path: Path) -> None:
    write_parquet(CALLS.empty_table(), tmp_path / "empty.parquet")
    params = PARAMS | {"files": [str(tmp_path / "empty.parquet")]}
    with Store(Limits(1, 512), params) as store:
        for table, source in file.reads.items():
            like = source or GIVEN.get(table) or f"schema/{table}"
            columns = OUTSIDE[table] if table in OUTSIDE and not source else load(like).returns
            store.fill(table, columns, [])
        for macro in file.uses:
            store.con.execute(load(macro).text)
        answer = store.con.sql(file.text, params={n: params[n] for n in file.params})
        got = {c: str(t) for c, t in zip(answer.columns, answer.types, strict=True)}
        assert got == file.returns
        assert answer.fetchall() == [] or file.name in ALWAYS_A_ROW


@pytest.mark.parametrize("file", QUESTIONS, ids=ids)
def test_what_leaves_the_database_is_in_order(file: SqlFile) -> None:
    """Sorting what only other questions read would cost for nothing."""
    ordered = re.search(r"\nORDER BY .*\n$", file.text)
    assert bool(ordered) == (file.name in asked_for())


@pytest.mark.parametrize("file", FILES, ids=ids)
def test_layout(file: SqlFile) -> None:
    for line in file.text.splitlines():
        assert len(line) <= 100, line
        assert line == line.rstrip()
        assert line.isascii()
    assert file.sentence.endswith((".", ":"))


def test_every_file_is_needed() -> None:
    loading = Path(str(pipeline.loading.__file__)).read_text()
    needed = {*asked_for(), *pairing.SIDE_QUESTIONS.values(), "schema/calls", "schema/tensors"}
    needed |= set(re.findall(r'"(schema/\w+)"', loading))
    while True:
        more = {s for n in needed for s in load(n).reads.values() if s}
        more |= {m for n in needed for m in load(n).uses}
        if more <= needed:
            break
        needed |= more
    assert needed == set(all_names())


def test_table_names_are_unique() -> None:
    tables = [file.table for file in QUESTIONS]
    assert len(tables) == len(set(tables))


def test_rank_questions_read_nothing_of_other_ranks() -> None:
    for file in QUESTIONS:
        for source in filter(None, file.reads.values()):
            if file.scope == "rank":
                assert load(source).scope == "rank", f"{file.name} reads {source}"


def test_every_question_has_a_test() -> None:
    untested = [
        file.name
        for file in QUESTIONS
        if file.name.partition("/")[0] != "schema"
        and not (Path(__file__).parent / f"{file.name.replace('/', '/test_')}.py").exists()
    ]
    assert not untested


def test_headers_promise_what_the_statements_do() -> None:
    for file in FILES:
        check(file)


def test_index_is_up_to_date() -> None:
    assert INDEX.read_text() == index_text(), "run: python -m pipeline.sql_index"


def test_no_sql_in_a_template_language() -> None:
    for file in FILES:
        assert "{{" not in file.text
        assert "{%" not in file.text


class TestLoader:
    @pytest.fixture
    def write(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(sqlfile, "SQL_ROOT", tmp_path)
        load.cache_clear()
        (tmp_path / "x").mkdir()

        def write(text: str) -> str:
            (tmp_path / "x" / "y.sql").write_text(text)
            return "x/y"

        yield write
        load.cache_clear()

    HEAD = "-- x/y: one row.\n--\n-- scope:   run\n-- params:  {}\n-- returns: a BIGINT\n"

    def test_parts_of_a_header(self, write) -> None:
        file = load(
            write(
                "-- x/y: one row per\n-- thing.\n--\n-- Why.\n--\n-- scope:   rank\n"
                "-- reads:   t   what a row is,\n--              from a/b\n"
                "--          u   another\n-- params:  $p BIGINT   meaning\n"
                "-- returns: a BIGINT, b STRUCT(c BIGINT, d VARCHAR)[]\nSELECT $p FROM t, u\n"
            )
        )
        assert file.sentence == "one row per thing."
        assert file.reads == {"t": "a/b", "u": None}
        assert file.params == {"p": "BIGINT"}
        assert file.returns == {"a": "BIGINT", "b": "STRUCT(c BIGINT, d VARCHAR)[]"}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("-- x/z: one row.\nSELECT 1", "first line must begin"),
            ("-- x/y: one row.\nSELECT 1", "scope must be"),
            (HEAD.format("none") + "-- merge: sum\nSELECT 1", "merge must be"),
            (HEAD.format("none") + "SELECT 1; SELECT 2", "2 statements"),
            (HEAD.format("none") + "DELETE FROM t", "DELETE statement, expected SELECT"),
            (HEAD.format("none") + "SELECT $p", r"declares parameters \[\]"),
            (HEAD.format("$p BIGINT   x") + "SELECT 1", r"the statement uses \[\]"),
            (HEAD.format("none") + "SELEC 1", "syntax error"),
        ],
    )
    def test_what_is_refused(self, write, text: str, message: str) -> None:
        with pytest.raises(SqlFileError, match=message) as error:
            check(load(write(text)))
        assert "sql/x/y.sql" in str(error.value)

    def test_unknown_name(self) -> None:
        with pytest.raises(SqlFileError, match="nan/nothing"):
            load("nan/nothing")


def test_files_run_as_they_stand() -> None:
    """What a DuckDB shell reads is the file itself: nothing is filled in."""
    for file in FILES:
        assert (SQL_ROOT / f"{file.name}.sql").read_text() == file.text
        assert len(duckdb.extract_statements(file.text)) == 1
