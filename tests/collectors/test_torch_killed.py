"""A rank that is killed while it writes leaves everything it wrote before."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from collectors import PrecisionDebugger

from .recording import Record, on_ranks

WORLD, KILLED, STEP = 3, 1, 1


def killed_at(table: str) -> None:
    """Kill this process when the second part of a table stands on disk under its other name."""

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "os.rename" and f"step={STEP}/rank={KILLED}/{table}-00001" in str(args[0]):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def written_now() -> None:
    """Ask for the end, and stay: what is in memory is written, as before every such end."""
    os.kill(os.getpid(), signal.SIGTERM)


def train(rank: int, dump: Path, table: str, origin: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: None)
    debugger = PrecisionDebugger(dump_path=dump)
    for step in range(2):
        debugger.start()
        x = torch.full((2,), rank + 1.0)
        dist.all_reduce(x)
        dies = (rank, step) == (KILLED, STEP)
        if dies and origin == "written":
            x = torch.log(-x)
        if dies:
            killed_at(table)
            written_now()
        if dies and origin == "lost":
            x = torch.log(-x)
        dist.all_reduce(x)
        torch.positive(x)
        if dies:
            written_now()
        debugger.stop()
        debugger.step()
    os._exit(0)  # nobody waits for the one that is dead


def dump_of(dump: Path, table: str, origin: str) -> None:
    assert on_ranks(WORLD, train, dump, table, origin) == [0, -signal.SIGKILL, 0]
    assert list((dump / f"step={STEP}" / f"rank={KILLED}").glob("*.unfinished"))


@pytest.mark.parametrize("table", ["tensors", "calls"])
def test_the_origin_on_a_killed_rank_is_found(
    tmp_path: Path, analyze: Callable[..., Any], table: str
) -> None:
    dump_of(tmp_path / "dump", table, "written")
    for step in range(2):
        for rank in range(WORLD):
            folder = tmp_path / "dump" / f"step={step}" / f"rank={rank}"
            assert (folder / "calls-00000.parquet").exists()
    result = analyze(tmp_path / "dump")
    assert result["read"]["ranks"] == WORLD
    assert result["read"]["steps"] == [0, 1]
    warned = [w for w in result["warnings"] if w["code"] == "step_incomplete"]
    assert [(w["step"], w["rank"]) for w in warned] == [(STEP, KILLED)]
    (origin,) = result["origins"]
    place = (origin["step"], origin["rank"], origin["call"])
    assert place == (STEP, KILLED, "Torch.log.0.forward")
    assert origin["kind"] == "compute"
    assert set(origin["reached"]) >= {0, 2}


def test_an_origin_that_was_lost_lies_on_the_killed_rank(
    tmp_path: Path, analyze: Callable[..., Any]
) -> None:
    dump_of(tmp_path / "dump", "tensors", "lost")
    result = analyze(tmp_path / "dump")
    assert [w["rank"] for w in result["warnings"] if w["code"] == "step_incomplete"] == [KILLED]
    (origin,) = result["origins"]
    assert (origin["kind"], origin["step"], origin["rank"]) == ("unrecorded", STEP, KILLED)


def test_what_was_written_before_the_kill_is_whole(tmp_path: Path) -> None:
    dump_of(tmp_path / "dump", "tensors", "written")
    kept = Record(tmp_path / "dump", step=STEP, rank=KILLED)
    assert [call["api"] for call in kept.calls] == ["full", "all_reduce", "neg", "log"]
    assert kept.calls[-1].tensors["output.0"]["has_nan"]
    for rank in range(WORLD):
        whole = Record(tmp_path / "dump", step=0, rank=rank).calls
        assert [call["api"] for call in whole] == ["full", "all_reduce", "all_reduce", "positive"]
