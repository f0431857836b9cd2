"""Ranks for the planted faults: forked from this process, one gloo group, each with a collector."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch.distributed as dist
import torch.distributed.fsdp
from torch import Tensor, nn

from collectors import PrecisionDebugger

torch.set_num_threads(1)

BATCH, SEQUENCE, WIDTH = 2, 4, 8


@dataclass
class Place:
    """Where a rank stands; tensor-parallel neighbours are numbered first.

    Args:
        rank: global rank.
        world: number of ranks.
        tp: group of those that share a layer; None where that is one rank alone.
        dp: group of those that hold the same shard; None likewise.
        shard: which part of a layer is here.
        replica: which copy of the model is here.
        debugger: records this rank.
    """

    rank: int
    world: int
    tp: dist.ProcessGroup | None
    dp: dist.ProcessGroup | None
    shard: int
    replica: int
    debugger: PrecisionDebugger

    @contextlib.contextmanager
    def step(self, *models: nn.Module) -> Iterator[None]:
        """Record one training step."""
        self.debugger.start(list(models))
        yield
        self.debugger.stop()
        self.debugger.step()

    def write(self) -> None:
        """Bring to disk what is recorded so far, as the collector does when a job is told to end.

        A part of a record then stands by itself, as it does every few seconds in a long step.
        """
        os.kill(os.getpid(), signal.SIGTERM)


Scenario = Callable[[Place], None]


def run_ranks(scenario: Scenario, world: int, tp: int, dump: Path) -> list[int]:
    """Run a scenario on so many ranks; return their exit codes, negative for a signal."""
    ranks = []
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _rank(scenario, rank, world, tp, dump)
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        ranks.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in ranks]


def _rank(scenario: Scenario, rank: int, world: int, tp: int, dump: Path) -> None:
    faulthandler.dump_traceback_later(60, exit=True)
    warnings.filterwarnings("error", "crossrank stopped|another PrecisionDebugger")
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # a script that goes on
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
    dist.init_process_group(
        "gloo",
        init_method=f"file://{dump}.store",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=50),
    )
    grid = torch.arange(world).view(-1, tp)
    place = Place(
        rank,
        world,
        tp=_own_group(rank, grid),
        dp=_own_group(rank, grid.T),
        shard=rank % tp,
        replica=rank // tp,
        debugger=PrecisionDebugger(dump_path=dump),
    )
    torch.manual_seed(0)
    scenario(place)
    dist.barrier()
    dist.destroy_process_group()


def _own_group(rank: int, groups: Tensor) -> dist.ProcessGroup | None:
    """Make the groups, one a row, on every rank alike; return the one that this rank is in."""
    own = None
    for ranks in groups.tolist() if groups.shape[1] > 1 else []:
        group = dist.new_group(ranks)
        own = group if rank in ranks else own
    return own


def data(seed: int, *shape: int) -> Tensor:
    """Return a batch, as a loader hands it out before the step is recorded."""
    return torch.randn(*shape or (BATCH, WIDTH), generator=torch.Generator().manual_seed(seed))


def loss_of(y: Tensor) -> Tensor:
    return torch.mean(y * y)


def dp_sync(model: nn.Module, group: Any, ranks: int, *, wait_later: bool = False) -> None:
    """Average the gradients over the replicas."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    works = [dist.all_reduce(g, group=group, async_op=wait_later) for g in gradients]
    for work in works if wait_later else []:
        work.wait()
    for gradient in gradients:
        gradient.div_(ranks)


def hold(weight: Tensor, place: int | tuple[int, ...], value: float) -> None:
    """Set one element of a weight before training."""
    with torch.no_grad():
        weight[place] = value
