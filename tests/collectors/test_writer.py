"""Rows reach the disk however the process ends, and a killed one loses its last part at most."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from collectors.layout import UNFINISHED, shard_dirs
from collectors.parts import RunInfo
from collectors.schema import CALLS, TENSORS
from collectors.writer import ShardWriter

RUN = RunInfo(run_id="r1", framework="pytorch", versions={"torch": "2.13.0"}, world_size=2)
ROOT = Path(__file__).resolve().parents[2]


def add(writer: ShardWriter, seq: int) -> None:
    tensor = {"seq": seq, "slot": "output.0", "max": 1.0, "has_nan": False}
    writer.add({"seq": seq, "name": f"Torch.add.{seq}.forward"}, [tensor])


def seqs(dump: Path, step: int = 0, rank: int = 0) -> list[int]:
    folder = shard_dirs(dump)[step, rank]
    return sorted(
        seq
        for part in folder.glob("calls-*.parquet")
        for seq in pq.read_table(part)["seq"].to_pylist()
    )


def footers(dump: Path) -> list[dict[str, str]]:
    return [
        {k.decode(): v.decode() for k, v in pq.read_metadata(part).metadata.items()}
        for part in sorted(shard_dirs(dump)[0, 0].glob("calls-*.parquet"))
    ]


def in_a_process(dump: Path, body: str) -> subprocess.Popen[str]:
    """Run `body` with a writer `w` and a function `add(w, seq)` in a process of its own."""
    program = f"""
import os, signal, sys, time, multiprocessing
from pathlib import Path
from collectors.writer import ShardWriter
from tests.collectors.test_writer import RUN, add
def main():
    dump = Path({str(dump)!r})
{textwrap.indent(textwrap.dedent(body), "    ")}
main()
"""
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, text=True, stdout=subprocess.PIPE
    )


def test_a_whole_step(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, step=0, rank=0, run=RUN, part_rows=10) as writer:
        for seq in range(25):
            add(writer, seq)
    assert seqs(tmp_path) == list(range(25))
    assert [f["crossrank.complete"] for f in footers(tmp_path)] == ["false"] * 5 + ["true"]
    assert footers(tmp_path)[0]["crossrank.run_id"] == "r1"
    table = pq.read_table(shard_dirs(tmp_path)[0, 0] / "tensors-00000.parquet")
    assert table.schema.names == TENSORS.names
    assert table["nan_count"].to_pylist() == [None] * 5


def test_an_exception_keeps_the_rows_but_not_the_mark(tmp_path: Path) -> None:
    def train() -> None:
        with ShardWriter(tmp_path, step=0, rank=0, run=RUN) as writer:
            add(writer, 0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert seqs(tmp_path) == [0]
    assert [f["crossrank.complete"] for f in footers(tmp_path)] == ["false"]


def test_parts_are_written_while_the_process_hangs(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, step=0, rank=0, run=RUN, part_seconds=0.2)
    add(writer, 0)
    deadline = time.monotonic() + 10
    while not list(shard_dirs(tmp_path)[0, 0].glob("calls-*.parquet")):
        assert time.monotonic() < deadline, "no part after ten seconds"
        time.sleep(0.05)
    writer.close()
    assert seqs(tmp_path) == [0]


def test_end_of_the_process_writes_what_is_left(tmp_path: Path) -> None:
    process = in_a_process(
        tmp_path, "w = ShardWriter(dump, step=0, rank=0, run=RUN)\nadd(w, 7)\nsys.exit(3)"
    )
    assert process.wait(60) == 3
    assert seqs(tmp_path) == [7]


@pytest.mark.parametrize("handled", [False, True])
def test_sigterm_writes_what_is_left(tmp_path: Path, handled: bool) -> None:
    body = """
    if HANDLED:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
    w = ShardWriter(dump, step=0, rank=0, run=RUN, part_seconds=1000)
    add(w, 5)
    print("ready", flush=True)
    time.sleep(60)
    """
    process = in_a_process(tmp_path, body.replace("HANDLED", str(handled)))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(60) == (9 if handled else -signal.SIGTERM)
    assert seqs(tmp_path) == [5]


def test_sigkill_loses_the_last_part_at_most(tmp_path: Path) -> None:
    body = """
    w = ShardWriter(dump, step=0, rank=0, run=RUN, part_rows=10, part_seconds=1000)
    for seq in range(12):
        add(w, seq)
    print("ready", flush=True)
    time.sleep(60)
    """
    process = in_a_process(tmp_path, body)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.wait(60)
    assert seqs(tmp_path) == list(range(10))
    assert not list(tmp_path.rglob(f"*{UNFINISHED}"))


def test_a_multiprocessing_child_writes_what_is_left(tmp_path: Path) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_child, args=(tmp_path,))
    child.start()
    child.join(60)
    assert seqs(tmp_path) == [3]


def _child(dump: Path) -> None:
    add(ShardWriter(dump, step=0, rank=0, run=RUN), 3)


def test_a_forked_child_does_not_write_its_parents_rows(tmp_path: Path) -> None:
    body = """
    w = ShardWriter(dump, step=0, rank=0, run=RUN, part_seconds=1000)
    add(w, 1)
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    """
    assert in_a_process(tmp_path, body).wait(60) == 0
    assert seqs(tmp_path) == [1]


def test_a_second_process_continues_the_parts(tmp_path: Path) -> None:
    for seq in (0, 1):
        with ShardWriter(tmp_path, step=0, rank=0, run=RUN) as writer:
            add(writer, seq)
    assert seqs(tmp_path) == [0, 1]
    assert len(footers(tmp_path)) == 2


def test_files_grow_with_ranks_and_steps_alone(tmp_path: Path) -> None:
    name = "Torch." + "odd name/with spaces" * 20 + ".0.forward"
    for rank in range(8):
        for step in range(5):
            with ShardWriter(tmp_path, step=step, rank=rank, run=RUN) as writer:
                for seq in range(50):
                    writer.add({"seq": seq, "name": f"{name}.{seq}"}, [])
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.parquet")]
    assert len(files) == 8 * 5 * 2
    assert not any("odd" in str(path) for path in files)
    assert len(shard_dirs(tmp_path)) == 40


def test_every_part_has_every_column(tmp_path: Path) -> None:
    ShardWriter(tmp_path, step=0, rank=0, run=RUN).close()
    folder = shard_dirs(tmp_path)[0, 0]
    assert pq.read_schema(folder / "calls-00000.parquet").names == CALLS.names
    assert pq.read_schema(folder / "tensors-00000.parquet").names == TENSORS.names


def test_dropped_calls_are_counted_in_the_footer(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, step=0, rank=0, run=RUN) as writer:
        writer.drop()
        writer.drop()
    assert footers(tmp_path)[-1]["crossrank.dropped"] == "2"


def test_run_file(tmp_path: Path) -> None:
    ShardWriter(tmp_path, step=0, rank=0, run=RUN).close()
    text = (tmp_path / "run.json").read_text()
    assert '"format": "crossrank"' in text
    assert '"world_size": 2' in text
    assert sorted(os.listdir(tmp_path)) == ["run.json", "step=0"]


def test_the_ranks_of_a_large_group_take_little_room_and_come_back(tmp_path: Path) -> None:
    ranks = list(range(2048))
    with_group = {"kind": "comm", "group_id": "world", "group_ranks": ranks}
    with ShardWriter(tmp_path, step=0, rank=0, run=RUN) as writer:
        for seq in range(10_000):
            name = f"Distributed.all_reduce.{seq}.forward"
            writer.add({"seq": seq, "name": name} | (with_group if seq % 8 == 0 else {}), [])
    (part,) = shard_dirs(tmp_path)[0, 0].glob("calls-*.parquet")
    assert part.stat().st_size < 200_000  # 1,250 lists: 20 MB as numbers
    read = pq.read_table(part)
    assert read["group_ranks"][0].as_py() == read["group_ranks"][9_992].as_py() == ranks
    assert read["group_ranks"].null_count == 8_750
