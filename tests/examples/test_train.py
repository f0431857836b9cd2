"""Real training with every fault in every topology: the answer names line, kind and rank."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ..conftest import Analyze
from ..ports import free_port

ROOT = Path(__file__).resolve().parents[2]
FAULTS = "none forward backward comm weight batch optimizer mask".split()
EIGHT = ["--parallel", "tp", "--tp", "2", "--pp", "2", "--dp", "2"]


@pytest.fixture(scope="module")
def train() -> Iterator[ModuleType]:
    """The example, with PyTorch loaded once for all ranks to come."""
    sys.path.insert(0, str(ROOT / "examples"))
    for heavy in ("torch._dynamo", "torch.distributed.fsdp", "collectors.debugger"):
        importlib.import_module(heavy)
    yield importlib.import_module("train")
    sys.path.remove(str(ROOT / "examples"))


def run(train: ModuleType, world: int, arguments: list[str]) -> None:
    """Train in forked ranks; a warning of the collector's is an error here."""
    port, ranks = str(free_port()), []
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                place = {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_PORT": port}
                os.environ.update(place, MASTER_ADDR="127.0.0.1")
                train.main(arguments)
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        ranks.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks] == [0] * world


def judge(result: dict[str, Any], planted: dict[str, Any] | None) -> None:
    if planted is None:
        assert (result["verdict"], result["origins"]) == ("clean", [])
        return
    (origin,) = result["origins"]
    assert origin["step"] == planted["step"]
    assert origin["rank"] == planted["rank"]
    assert origin["kind"] == planted["kind"]
    assert f"examples/train.py:{planted['line']} in " in origin["source"]
    assert origin["certainty"] == "lineage"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("parallel", ["tp", "dp", "pp", "fsdp2", "ep"])
@pytest.mark.parametrize("world", [2, 4])
def test_the_planted_line(
    train: ModuleType, analyze: Analyze, tmp_path: Path, world: int, parallel: str, fault: str
) -> None:
    dump = tmp_path / "dump"
    run(train, world, ["--parallel", parallel, "--fault", fault, "--dump", str(dump)])
    judge(analyze(dump), train.planted(fault, world))


@pytest.mark.parametrize("fault", FAULTS)
def test_tensor_pipeline_and_data_parallel_at_once(
    train: ModuleType, analyze: Analyze, tmp_path: Path, fault: str
) -> None:
    run(train, 8, [*EIGHT, "--fault", fault, "--dump", str(tmp_path / "dump")])
    judge(analyze(tmp_path / "dump"), train.planted(fault, 8))


def test_as_users_start_it(train: ModuleType, tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    command = [*torchrun, f"--master_port={free_port()}", "examples/train.py"]
    arguments = ["--parallel", "tp", "--fault", "forward", "--dump", str(tmp_path / "dump")]
    told = subprocess.run([*command, *arguments], cwd=ROOT, check=True, capture_output=True)
    planted = train.planted("forward", 2)
    where = "planted: step {step}, rank {rank}, examples/train.py:{line} kind {kind}"
    assert where.format(**planted) in told.stdout.decode()
    analyze = [sys.executable, "-m", "pipeline.analyze", str(tmp_path / "dump")]
    told = subprocess.run(
        [*analyze, "--out", str(tmp_path / "out"), "--json"], cwd=ROOT, check=True, stdout=-1
    )
    judge(json.loads(told.stdout), planted)
