"""Faults in stages that hand on activations, and gradients back."""

from __future__ import annotations

from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .same_faults import BATCH, WIDTH, Place, data, hold, loss_of
from .same_faults_layers import RMSNorm


def send(x: Tensor, to: int, how: str) -> None:
    x = x.detach().contiguous()
    if how == "batch":
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, to)]):
            work.wait()
    elif how == "isend":
        dist.isend(x, to).wait()
    else:
        dist.send(x, to)


def receive(sender: int, how: str) -> Tensor:
    x = torch.empty(BATCH, WIDTH)
    if how == "batch":
        for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, sender)]):
            work.wait()
    elif how == "isend":
        dist.irecv(x, sender).wait()
    else:
        dist.recv(x, sender)
    return x


def stages(e: Place, stage: nn.Module, x: Tensor, how: str, keep: Tensor | None = None) -> None:
    """Run one microbatch forward and backward; rows where `keep` is 0 are dropped."""
    first, last = e.rank == 0, e.rank == e.world - 1
    if not first:
        x = receive(e.rank - 1, how).requires_grad_()
    y = stage(x if keep is None else torch.mul(x, keep))
    if last:
        loss_of(y).backward()
    else:
        send(y, e.rank + 1, how)
        y.backward(receive(e.rank + 1, how))
    if not first:
        assert x.grad is not None
        send(x.grad, e.rank - 1, how)


def pipeline(e: Place, bad: int = 0, microbatches: int = 1, how: str = "send") -> None:
    """One stage drops a row of its last microbatch; its norm, with eps 0, divides by that."""
    stage = nn.Sequential(RMSNorm(0.0), nn.Linear(WIDTH, WIDTH))
    batches = [data(10 + n) for n in range(microbatches)]
    with e.step(stage):
        for n, x in enumerate(batches):
            keep = torch.ones(BATCH, 1)
            keep[0] = 0 if e.rank == bad and n == microbatches - 1 else 1
            stages(e, stage, x, how, keep)


batched = partial(pipeline, how="batch")
second_microbatch = partial(pipeline, bad=1, microbatches=2)


class Stage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return torch.log(F.softplus(self.fc(x)))  # fault: third_stage log


def third_stage(e: Place) -> None:
    """Rank 2 receives what is finite, and makes -inf of it."""
    stage = Stage()
    if e.rank == 2:
        hold(stage.fc.bias, 3, -300)
    x = data(10)
    with e.step(stage):
        stages(e, stage, x, "isend")
