"""What clusters do to a run: it is stopped, runs out of memory, of open files; workers die."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis import analyze_dump, run_store
from pipeline.engine_local import LocalEngine
from pipeline.settings import Limits, limits
from pipeline.shards import open_dump

from ..dumps import Run, Value, bad
from .under_way import batches_done

ROOT = Path(__file__).resolve().parents[2]


def faulty_run(folder: Path, ranks: int) -> Path:
    """Make a dump in which the last rank gives birth to a NaN that all get."""
    run = Run(folder, ranks=ranks)
    for rank in range(ranks):
        shard = run.rank(rank)
        (x,) = shard.call("Torch.log.0.forward", [Value()], [Value(nan=int(rank == ranks - 1))])
        (z,) = shard.comm("Distributed.all_reduce.0.forward", [x], [Value(nan=1)], reduce_op="SUM")
        shard.call("Torch.mul.0.forward", [z], [bad(nan=8)])
    return run.write()


RANK_BY_RANK = """
import sys, pipeline.tasks
pipeline.tasks.BATCH_BYTES["shards"] = 1  # as if the shards were large: each rank is a batch
from pipeline.cli import main
sys.exit(main())
"""


def command(dump: Path, out: Path) -> list[str]:
    words = ["analyze", str(dump), "--out", str(out), "--workers", "2", "--engine", "local"]
    return [sys.executable, "-c", RANK_BY_RANK, *words]


def result_of(out: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_goes_on_from_what_was_finished(tmp_path: Path, number: int) -> None:
    dump, out = faulty_run(tmp_path / "dump", ranks=40), tmp_path / "answer"
    work = tmp_path / ".answer.unfinished"
    run = subprocess.Popen(command(dump, out), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and batches_done(work) < 5:
        time.sleep(0.01)
    run.send_signal(number)
    _, log = run.communicate()
    assert run.returncode == 130, log
    assert f"--out {out} goes on from there" in log
    assert "Traceback" not in log
    assert not out.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"dump", work.name}
    kept = batches_done(work)

    again = subprocess.run(command(dump, out), cwd=ROOT, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    (done,) = re.findall(r"shards read: (\d+) of \1", again.stderr)
    assert 5 <= 40 - int(done) <= kept
    assert result_of(out)["origins"][0]["rank"] == 39
    assert result_of(out)["read"]["ranks"] == 40
    assert not work.exists()


def test_a_shard_that_changed_is_read_again(tmp_path: Path) -> None:
    """What an earlier run left is of no use for other files."""
    dump, work = faulty_run(tmp_path / "dump", ranks=2), tmp_path / "work"
    assert origins(dump, work) == [1]
    (tmp_path / "dump").rename(tmp_path / "old")
    faulty_run(tmp_path / "dump", ranks=3)
    assert origins(dump, work) == [2]
    assert origins(dump, work) == [2]


def origins(folder: Path, work: Path) -> list[int]:
    """Return the ranks of the origins of an analysis that keeps its work."""
    dump = open_dump(folder)
    with run_store(dump, limits(1), nan_only=False) as store:
        result = analyze_dump(dump, store, LocalEngine(1), Limits(1, 512), work=work)
    return [origin["rank"] for origin in result["origins"]]


def test_out_of_memory_is_told_by_rank_and_step(tmp_path: Path) -> None:
    dump = open_dump(faulty_run(tmp_path / "dump", ranks=2))
    with run_store(dump, limits(1), nan_only=False) as store:
        result = analyze_dump(dump, store, LocalEngine(1), Limits(1, 1))
    assert result["verdict"] == "unknown"
    told = [w for w in result["warnings"] if w["code"] == "shard_unreadable"]
    assert [(w["step"], w["rank"]) for w in told] == [(0, 0), (0, 1)]
    assert all("memory" in w["text"].lower() for w in told)


def test_an_earlier_result_leaves_nothing(tmp_path: Path) -> None:
    dump, out = faulty_run(tmp_path / "dump", ranks=2), tmp_path / "answer"
    out.mkdir()
    mine = out / "mine.parquet"
    mine.write_text("not of crossrank")
    for _ in range(2):
        subprocess.run(command(dump, out), cwd=ROOT, check=True, capture_output=True)
        (out / "origins.parquet").rename(out / "handovers.parquet")  # as an earlier version may
    subprocess.run(command(dump, out), cwd=ROOT, check=True, capture_output=True)
    assert mine.read_text() == "not of crossrank"
    assert (out / "origins.parquet").stat().st_size != (out / "handovers.parquet").stat().st_size


def few_open_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))


def test_thousands_of_small_files_and_few_may_be_open(tmp_path: Path) -> None:
    dump, out = faulty_run(tmp_path / "dump", ranks=1500), tmp_path / "answer"
    words = [sys.executable, "-m", "pipeline.analyze", str(dump), "--out", str(out)]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, preexec_fn=few_open_files, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert result_of(out)["origins"][0]["rank"] == 1499
    assert len(result_of(out)["origins"][0]["reached"]) == 1499
