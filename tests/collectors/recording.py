"""Records what a test does, in this process or in ranks of its own, and reads the shards back."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import torch
import torch.distributed as dist
from torch import nn

from collectors import PrecisionDebugger

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = ["torch", "torch.distributed.tensor", "torch._dynamo", __name__, "collectors.debugger"]

torch.set_num_threads(1)


@contextlib.contextmanager
def recording(
    dump: Path, model: nn.Module | None = None, **config: Any
) -> Iterator[PrecisionDebugger]:
    """Record one step."""
    debugger = PrecisionDebugger(dump_path=dump, **config)
    debugger.start(model)
    try:
        yield debugger
    finally:
        debugger.stop()
    debugger.step()


@dataclass
class Call:
    """One recorded call: its columns, and its tensors by slot."""

    columns: dict[str, Any]
    tensors: dict[str, dict[str, Any]]

    def __getitem__(self, column: str) -> Any:
        return self.columns[column]

    def slots(self, direction: str) -> list[str]:
        """Return the slots whose names begin so."""
        return [slot for slot in self.tensors if slot.startswith(direction)]


class Record:
    """What the shards of a dump hold, for one step and rank."""

    def __init__(self, dump: Path, *, step: int = 0, rank: int = 0) -> None:
        folder = dump / f"step={step}" / f"rank={rank}"
        self.calls = [Call(columns, {}) for columns in _rows(folder, "calls")]
        self.by_seq = {call["seq"]: call for call in self.calls}
        assert len(self.by_seq) == len(self.calls), "two calls have one seq"
        for row in _rows(folder, "tensors"):
            call = self.by_seq[row["seq"]]
            assert row["slot"] not in call.tensors, f"{call['name']} has two {row['slot']}"
            call.tensors[row["slot"]] = row

    @property
    def names(self) -> list[str]:
        """Return the names of the calls, in order."""
        return [call["name"] for call in self.calls]

    def call(self, name: str) -> Call:
        """Return the one call of a name; the number and ending `.0.forward` may be left out."""
        full = (
            name if name.endswith(("forward", "backward", "step", "clip")) else f"{name}.0.forward"
        )
        (found,) = [call for call in self.calls if call["name"] == full] or [None]
        assert found is not None, f"no {full} in {self.names}"
        return found

    def producer(self, name: str, slot: str = "input.0") -> tuple[str, str] | None:
        """Return the name and the slot of what made a tensor that a call read."""
        row = self.call(name).tensors[slot]
        if row["producer_seq"] is None:
            return None
        maker = self.by_seq[row["producer_seq"]]
        assert row["producer_slot"] in maker.tensors, f"{maker['name']} has no {row}"
        return maker["name"], row["producer_slot"]


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    files = sorted(map(str, folder.glob(f"{table}-*.parquet")))
    if not files:
        return []
    with duckdb.connect(config={"threads": 1}) as con:
        rows = con.read_parquet(files, union_by_name=True)
        found = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
    return sorted(found, key=lambda row: row["seq"]) if table == "calls" else found


def record(dump: Path, work: Callable[[], Any], model: nn.Module | None = None) -> Record:
    """Return the record of what `work` does."""
    with recording(dump, model):
        work()
    return Record(dump)


def on_ranks(world: int, body: Callable[..., None], dump: Path, *args: Any) -> list[int]:
    """Run `body(rank, dump, *args)` in as many processes of one gloo group; return exit codes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, body.__module__])
    children = [
        context.Process(target=_rank, args=(rank, world, body, dump, args)) for rank in range(world)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
        if child.is_alive():
            child.kill()
            child.join()
    return [child.exitcode or 0 for child in children]


def _rank(rank: int, world: int, body: Callable[..., None], dump: Path, args: Any) -> None:
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
    dist.init_process_group(
        "gloo",
        init_method=f"file://{dump}.store",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=60),
    )
    try:
        body(rank, dump, *args)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    dist.destroy_process_group()


def run_script(body: str, *, wait: bool = True) -> subprocess.Popen[str]:
    """Run a program of its own; what it prints and warns of stands in stdout and stderr."""
    head = "import os, sys, warnings\nimport torch\nfrom collectors import PrecisionDebugger\n"
    process = subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(body)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if wait:
        process.wait(100)
    return process
