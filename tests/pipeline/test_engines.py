"""Both engines, one suite: the same tasks, the same rows, failures that are told of."""

from __future__ import annotations

import io
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.analysis import QUESTIONS, analyze_dump, run_store
from pipeline.database import RunDatabase
from pipeline.engine import Engine, Failure
from pipeline.engine_local import LocalEngine
from pipeline.engine_ray import RayEngine
from pipeline.errors import DumpError
from pipeline.settings import Limits, limits
from pipeline.shards import open_dump
from pipeline.store import Store
from pipeline.tasks import BATCH_BYTES, Batch, batches, run_batch
from pipeline.work import Work

from ..dumps import Run, Value, bad


@pytest.fixture(params=["in this thread", "threads", "processes", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    made: Engine
    if request.param == "ray":
        request.getfixturevalue("cluster")
        made = RayEngine(4, None)
    else:
        workers = 1 if request.param == "in this thread" else 2
        made = LocalEngine(workers, processes=request.param == "processes")
    yield made
    made.close()


def double(item: int) -> int:
    return 2 * item


def fail_at_three(item: int) -> int:
    if item == 3:
        raise OSError("disk gone")
    return item


def refuse(item: int) -> int:
    raise DumpError(f"{item} is from the future")


def die_at_two(item: int) -> int:
    if item == 2:
        os._exit(1)
    return item


def test_every_item_comes_back_with_its_result(engine: Engine) -> None:
    assert dict(engine.map(double, range(20))) == {n: 2 * n for n in range(20)}


def test_no_items(engine: Engine) -> None:
    assert list(engine.map(double, [])) == []


def test_a_failure_is_a_value_and_the_rest_goes_on(engine: Engine) -> None:
    done = dict(engine.map(fail_at_three, range(6)))
    assert done[3] == Failure("OSError: disk gone")
    assert {n: done[n] for n in done if n != 3} == {n: n for n in range(6) if n != 3}


def test_what_the_user_must_mend_ends_the_run(engine: Engine) -> None:
    with pytest.raises(DumpError, match="from the future"):
        list(engine.map(refuse, range(3)))


@pytest.mark.parametrize("kind", ["processes", "ray"])
def test_a_worker_that_dies_is_told_of(kind: str, request: pytest.FixtureRequest) -> None:
    if kind == "ray":
        request.getfixturevalue("cluster")
    engine = RayEngine(4, None) if kind == "ray" else LocalEngine(2, processes=True)
    done = dict(engine.map(die_at_two, range(4)))
    engine.close()
    assert isinstance(done[2], Failure)
    assert "died" in done[2].reason or "crashed" in done[2].reason
    assert set(done) == {0, 1, 2, 3}


def test_copies_of_this_process_work_too() -> None:
    engine = LocalEngine(2, processes=True, forked=True)
    assert dict(engine.map(double, range(20))) == {n: 2 * n for n in range(20)}
    done = dict(engine.map(die_at_two, range(4)))
    engine.close()
    assert isinstance(done[2], Failure)
    assert "died" in done[2].reason


def test_copies_end_with_a_process_that_is_killed() -> None:
    program = """
import os, signal
from pipeline.engine_local import LocalEngine
list(LocalEngine(2, forked=True).map(abs, range(8)))
children = open(f"/proc/self/task/{os.getpid()}/children").read()
print(children, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    children = [int(pid) for pid in killed.stdout.split()]
    assert len(children) == 2
    deadline = time.monotonic() + 10
    while any(running(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(running(pid) for pid in children)


def running(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def faulty_dump(folder: Path, ranks: int = 6) -> Path:
    run = Run(folder, ranks=ranks)
    for step in range(2):
        for rank in range(ranks):
            shard = run.rank(rank, step)
            value = Value(nan=int((step, rank) == (1, 4)))
            (x,) = shard.call("Torch.log.0.forward", [Value()], [value])
            y = Value(nan=1) if step else Value()
            (z,) = shard.comm("Distributed.all_reduce.0.forward", [x], [y], reduce_op="SUM")
            shard.call("Torch.mul.0.forward", [z], [bad(nan=8) if step else Value()])
    return run.write()


def test_all_engines_give_equal_tables(engine: Engine, tmp_path: Path) -> None:
    dump = open_dump(faulty_dump(tmp_path / "dump"))
    tables = []
    for one in (engine, LocalEngine(1)):
        with run_store(dump, limits(1), nan_only=False) as store:
            result = analyze_dump(dump, store, one, Limits(1, 512))
            rows = {t: store.con.table(t).order("ALL").fetchall() for t in store.tables()}
            tables.append((result, rows))
    (here, there) = tables
    assert here[0] == there[0]
    assert here[0]["origins"][0]["rank"] == 4
    assert here[1].keys() == there[1].keys()
    for table, rows in here[1].items():
        assert rows == there[1][table], table


def test_a_tree_of_merges_gives_the_same_tables(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six batches become three and two, and the driver reads these."""
    dump = open_dump(faulty_dump(tmp_path / "dump"))
    monkeypatch.setitem(BATCH_BYTES, "shards", 1)
    tables, folders = [], []
    for one, fan_in in ((engine, 2), (LocalEngine(1), 6)):
        monkeypatch.setattr("pipeline.reduction.FAN_IN", fan_in)
        folders.append(tmp_path / f"work{fan_in}")
        with run_store(dump, limits(1), nan_only=False) as store:
            analyze_dump(dump, store, one, Limits(1, 512), work=folders[-1])
            tables.append({t: store.con.table(t).order("ALL").fetchall() for t in store.tables()})
    assert tables[0] == tables[1]
    assert len(tables[0]["groups"]) == 1
    merged, single = ({p.name for p in folder.iterdir() if p.is_dir()} for folder in folders)
    assert single < merged
    assert len(merged) == len(single) + 3 + 2


def test_batches_of_many_ranks_give_the_same_rows(tmp_path: Path) -> None:
    dump = open_dump(faulty_dump(tmp_path / "dump"))
    (together,) = batches(dump, QUESTIONS, Limits(1, 512), {"nan_only": False})
    assert str(together) == "ranks 0-5, step 0, 1"
    both = [unpacked([together], tmp_path / "1"), unpacked(together.split(), tmp_path / "6")]
    assert both[0] == both[1]
    assert len(both[0]["comm/operations"]) == 12


def unpacked(work: list[Batch], folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return question -> rows in one order, of all batches."""
    place = Work.open(folder)
    for batch in work:
        place.put(batch.key, run_batch(batch))
    with Store(Limits(1, 512), {}) as store:
        for name in QUESTIONS:
            store.declare(name)
            store.take_in(name, place.files([batch.key for batch in work], name))
        return {name: sorted(map(repr, store.rows(name))) for name in QUESTIONS}


def test_a_bad_shard_in_a_batch_does_not_lose_the_others(tmp_path: Path) -> None:
    """Its footer is whole, so that only reading it shows the damage."""
    folder = faulty_dump(tmp_path / "dump")
    part = folder / "step=1" / "rank=2" / "tensors-00000.parquet"
    content = bytearray(part.read_bytes())
    content[4:200] = b"\xff" * 196
    part.write_bytes(bytes(content))
    dump = open_dump(folder)
    with run_store(dump, limits(1), nan_only=False) as store:
        result = analyze_dump(dump, store, LocalEngine(1), Limits(1, 512))
    assert [(o["step"], o["rank"]) for o in result["origins"]] == [(1, 4)]
    told = [w for w in result["warnings"] if w["code"] == "shard_unreadable"]
    assert {(w["step"], w["rank"]) for w in told} == {(0, 2), (1, 2)}
    assert "rank=2" in told[0]["text"]


def fifty_kilobytes(number: int) -> dict[str, bytes]:
    """Return 1,200 rows of random numbers, which no compression makes smaller."""
    columns = ("step", "rank", "seq", "entry_step", "entry_seq")
    draw = random.Random(number)
    table = pa.table({name: [draw.getrandbits(63) for _ in range(1200)] for name in columns})
    table = table.append_column("received", pa.array([True] * 1200))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return {"nan/exits": sink.getvalue()}


def test_memory_of_the_driver_stays_flat(tmp_path: Path) -> None:
    """Results go to files, and the database, which spills; 4,000 of 50 KB would be 200 MB."""
    work = Work.open(tmp_path)
    with Store(Limits(1, 64), {}) as store:
        store.declare("nan/exits")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number, result in LocalEngine(1).map(fifty_kilobytes, range(4000)):
            assert not isinstance(result, Failure)
            assert len(result["nan/exits"]) > 48_000
            work.put(str(number), result)
        store.take_in("nan/exits", work.files(list(map(str, range(4000))), "nan/exits"))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        count = store.con.table("exits").aggregate("count(*)").fetchall()
    assert count == [(4000 * 1200,)]
    assert grown < 120 * 1024


def test_a_failed_task_names_its_rank_and_step(tmp_path: Path) -> None:
    dump = open_dump(faulty_dump(tmp_path / "dump", ranks=2))
    work = [
        Batch("no such kind", batch.shards, ("health/shards",), batch.limits, batch.params)
        for batch in batches(dump, QUESTIONS, Limits(1, 512), {"nan_only": False})[0].split()
    ]
    for shard in dump.shards:
        for part in shard.path.iterdir():
            part.unlink()
        shard.path.rmdir()
    with Store(Limits(1, 512), {"nan_only": False, "world_size": 2}) as store:
        place = Work.open(tmp_path / "work")
        database = RunDatabase(store, place, LocalEngine(1), lambda _: work)
        database.collect(["health/shards"])
        rows = database.rows("health/shards")
    assert {(r["step"], r["rank"]) for r in rows} == {(s, r) for s in (0, 1) for r in (0, 1)}
