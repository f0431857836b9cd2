"""NaN rows that Parquet statistics hide from DuckDB 2.0.1, in our files and in files of others."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collectors.parts import write_parquet
from collectors.schema import TENSORS
from pipeline.loading import load_shards
from pipeline.query import ask
from pipeline.settings import Limits
from pipeline.shards import open_dump
from pipeline.store import Store

LIMITS = Limits(threads=2, memory_mb=1024)
QUERIES = {
    "isnan": "SELECT seq FROM {} WHERE isnan(norm) ORDER BY seq",
    "equal": "SELECT seq FROM {} WHERE norm = 'nan' ORDER BY seq",
    "range, NaN counts as largest": "SELECT seq FROM {} WHERE norm > 5 ORDER BY seq",
    "worst three": "SELECT seq FROM {} ORDER BY norm DESC LIMIT 3",
    "global maximum": "SELECT max(norm) FROM {}",
    "grouped maximum": "SELECT max(norm) FROM {} GROUP BY seq // 1000000",
}


def tensor_rows(norms: list[float | None], **columns: list) -> pa.Table:
    given = {"seq": list(range(len(norms))), "norm": norms} | columns
    return pa.table(
        [
            pa.array(given[f.name], f.type) if f.name in given else pa.nulls(len(norms), f.type)
            for f in TENSORS
        ],
        schema=TENSORS,
    )


def foreign_dump(dump: Path, ranks: list[list[float]], **options) -> Path:
    """Write tensors as somebody else would: pyarrow's defaults, statistics on every column."""
    for rank, norms in enumerate(ranks):
        folder = dump / "step=0" / f"rank={rank}"
        folder.mkdir(parents=True)
        pq.write_table(tensor_rows(norms), folder / "tensors-00000.parquet", **options)
        names = pa.table({"seq": list(range(len(norms))), "name": ["x"] * len(norms)})
        pq.write_table(names, folder / "calls-00000.parquet")
    return dump


def answers(dump: Path, in_memory: pa.Table) -> tuple[dict, dict]:
    """Return what each query gives over the dump, and over the same rows in memory."""
    with Store(LIMITS, {}) as store:
        found = open_dump(dump)
        load_shards(store, found.kind, found.shards)
        got = {n: repr(ask(store, q.format("tensors")).fetchall()) for n, q in QUERIES.items()}
    con = duckdb.connect()
    con.register("rows", in_memory)
    return got, {n: repr(con.sql(q.format("rows")).fetchall()) for n, q in QUERIES.items()}


def test_foreign_file_with_statistics_hides_nothing(tmp_path: Path) -> None:
    norms = [1.0, 5.0, math.nan, 3.0]
    got, wanted = answers(foreign_dump(tmp_path / "d", [norms]), tensor_rows(norms))
    assert got == wanted
    assert got["isnan"] == "[(2,)]"


def test_the_trap_is_real(tmp_path: Path) -> None:
    """If this fails, DuckDB was mended and `Store.be_nan_safe` can go."""
    dump = foreign_dump(tmp_path / "d", [[1.0, 5.0, math.nan, 3.0]])
    found = duckdb.read_parquet(str(dump / "step=0/rank=0/tensors-00000.parquet"))
    assert found.filter("isnan(norm)").fetchall() == []


def test_nan_in_one_row_group_of_forty(tmp_path: Path) -> None:
    norms = [float(i % 10) for i in range(40_000)]
    norms[33_000] = math.nan
    dump = foreign_dump(tmp_path / "d", [norms], row_group_size=1000)
    got, wanted = answers(dump, tensor_rows(norms))
    assert got["worst three"].startswith("[(33000,)")
    assert {k: got[k] for k in got if k != "worst three"} == {
        k: wanted[k] for k in wanted if k != "worst three"
    }


def test_nan_in_one_file_of_thirty(tmp_path: Path) -> None:
    ranks = [[float(rank), 2.0] for rank in range(30)]
    ranks[17][1] = math.nan
    dump = foreign_dump(tmp_path / "d", ranks)
    with Store(LIMITS, {}) as store:
        found = open_dump(dump)
        load_shards(store, found.kind, found.shards)
        hidden = ask(store, "SELECT rank, seq FROM tensors WHERE isnan(norm)").fetchall()
        nested = ask(
            store, "SELECT rank FROM (SELECT rank, {'x': norm} AS s FROM tensors) WHERE isnan(s.x)"
        ).fetchall()
    assert (hidden, nested) == ([(17, 1)], [(17,)])


def test_nan_inside_a_struct_column(tmp_path: Path) -> None:
    table = pa.table({"s": [{"x": 1.0}, {"x": math.nan}]})
    for name in "ab":
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with Store(LIMITS, {}) as store:
        store.be_nan_safe()
        rows = store.con.read_parquet([str(tmp_path / f"{n}.parquet") for n in "ab"])
        assert rows.filter("isnan(s.x)").aggregate("count(*)").fetchall() == [(2,)]


def test_our_files_have_no_statistics_on_floats(tmp_path: Path) -> None:
    norms = [1.0, math.nan] * 1000
    write_parquet(tensor_rows(norms), tmp_path / "t.parquet")
    group = pq.read_metadata(tmp_path / "t.parquet").row_group(0)
    with_statistics = {
        group.column(i).path_in_schema
        for i in range(group.num_columns)
        if group.column(i).is_stats_set
    }
    assert "seq" in with_statistics
    assert not with_statistics & {"max", "min", "mean", "norm"}
    found = duckdb.read_parquet(str(tmp_path / "t.parquet")).filter("isnan(norm)")
    assert found.aggregate("count(*)").fetchall() == [(1000,)]


@pytest.mark.parametrize("files", [1, 8, 64])
def test_one_nan_among_two_million_rows(tmp_path: Path, files: int) -> None:
    """The record's finite maximum is small: only has_nan tells."""
    rows, each = 2_000_000, 2_000_000 // files
    folder = tmp_path / "d" / "step=0" / "rank=0"
    folder.mkdir(parents=True)
    seq = pa.array(range(rows))
    flags = [False] * rows
    flags[1_234_567] = True
    table = pa.table({"seq": seq, "max": [0.5] * rows, "has_nan": flags})
    for number in range(files):
        part = table.slice(number * each, each)
        pq.write_table(part, folder / f"tensors-{number:05d}.parquet")
    with Store(LIMITS, {}) as store:
        found = open_dump(tmp_path / "d")
        load_shards(store, found.kind, found.shards)
        assert ask(store, "SELECT seq FROM tensors WHERE has_nan").fetchall() == [(1_234_567,)]


def test_null_typed_column_of_one_rank(tmp_path: Path) -> None:
    for rank, column in enumerate([pa.nulls(2), pa.array([1.5, 2.5])]):
        folder = tmp_path / "d" / "step=0" / f"rank={rank}"
        folder.mkdir(parents=True)
        table = pa.table({"seq": [0, 1], "max": column})
        pq.write_table(table, folder / "tensors-00000.parquet")
    with Store(LIMITS, {}) as store:
        found = open_dump(tmp_path / "d")
        load_shards(store, found.kind, found.shards)
        rows = ask(store, "SELECT rank, max FROM tensors ORDER BY rank, seq").fetchall()
    assert rows == [(0, None), (0, None), (1, 1.5), (1, 2.5)]


def test_half_floats_survive(tmp_path: Path) -> None:
    half = pa.table({"x": pa.array([1.5, math.inf, math.nan], pa.float16())})
    pq.write_table(half, tmp_path / "half.parquet")
    with Store(LIMITS, {}) as store:
        store.be_nan_safe()
        from_file = store.con.read_parquet(str(tmp_path / "half.parquet")).fetchall()
        from_arrow = store.arrow(half).fetchall()
    assert repr(from_file) == repr(from_arrow) == "[(1.5,), (inf,), (nan,)]"


def test_stack_text_beyond_two_gibibytes() -> None:
    with Store(LIMITS, {}) as store:
        rows = store.con.sql("SELECT repeat('frame ', 175000) AS stack FROM range(3100)")
        table = rows.to_arrow_table()
    assert len(table) == 3100
    assert table.nbytes > 3 * 2**30
    assert table["stack"][3099].as_py() == "frame " * 175_000
