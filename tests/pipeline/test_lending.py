"""A thread's database, lent from task to task: nothing of one is left for the next."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.lending import lent
from pipeline.settings import Limits
from pipeline.store import Store

LIMITS = Limits(threads=1, memory_mb=200)


def tables(store: Store) -> set[str]:
    rows = store.con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    return {name for (name,) in rows}


def test_nothing_is_left_of_the_task_before() -> None:
    with lent(LIMITS, {"nan_only": True}) as first:
        first.be_nan_safe()
        first.fill("wanted", {"seq": "BIGINT"}, [[3]])
        (first.folder / "fetched").mkdir()
        before = first.folder
    with lent(LIMITS, {"nan_only": False}) as second:
        assert second is first
        assert second.params == {"nan_only": False}
        assert tables(second) == set()
        assert second.tables() == []
        second.fill("wanted", {"seq": "BIGINT", "rank": "BIGINT"}, [[3, 4]])
        assert second.con.table("wanted").fetchall() == [(3, 4)]
        (pruned,) = second.con.execute("SELECT current_setting('disabled_optimizers')").fetchone()
        assert pruned == ""
    assert not before.exists()


def test_a_task_that_failed_takes_its_store_along() -> None:
    with lent(LIMITS, {}) as broken:
        pass
    with pytest.raises(duckdb.Error), lent(LIMITS, {}) as same:
        same.con.execute("SELECT nothing")
    with lent(LIMITS, {}) as store:
        assert same is broken
        assert store is not broken
        assert tables(store) == set()
    with pytest.raises(duckdb.ConnectionException):
        broken.con.execute("SELECT 1")


def test_other_limits_are_another_store() -> None:
    with lent(LIMITS, {}) as small:
        pass
    with lent(Limits(threads=1, memory_mb=300), {}) as large:
        (limit,) = large.con.execute("SELECT current_setting('memory_limit')").fetchone()
        assert limit == "300.0 MiB"
        assert large is not small


def test_a_task_within_a_task_has_its_own() -> None:
    with lent(LIMITS, {}) as outer:
        outer.fill("wanted", {"seq": "BIGINT"}, [[1]])
        with lent(LIMITS, {}) as inner:
            assert inner is not outer
            assert tables(inner) == set()
        assert outer.con.table("wanted").fetchall() == [(1,)]
