"""Faults in replicas: batches, gradients, sharded weights, optimizers, loss scales."""

from __future__ import annotations

import os
import signal
from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

from .same_faults import BATCH, WIDTH, Place, data, dp_sync, hold, loss_of
from .same_faults_layers import GatherRows


def two_linear(out: int = WIDTH) -> tuple[nn.Linear, nn.Linear, nn.Module]:
    fc, fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, out)
    return fc, fc2, nn.Sequential(fc, fc2)


def half_sum(e: Place) -> None:
    """Every rank brings 30000, and float16 ends at 65504."""
    fc = nn.Linear(WIDTH, WIDTH)
    x = data(3 + e.rank)
    with e.step(fc):
        y = fc(x)
        g = (torch.tanh(y) * 1000).detach()
        g[0, 0] = 30000.0
        b = g.half()
        dist.all_reduce(b)  # fault: half_sum all_reduce
        s = b.float() / e.world
        torch.mean(s * y).backward()


def two_ranks(e: Place) -> None:
    """Rank 0: the log of 0. Rank 3, on its own: 0 / 0."""
    fc, fc2, m = two_linear()
    if e.rank == 0:
        hold(fc.bias, 3, -300)
    mask = torch.ones(BATCH, 1) * (e.rank != 3)
    x = data(5 + e.rank)
    with e.step(m):
        h = torch.log(F.softplus(fc(x)))  # fault: two_ranks log
        w = torch.sum(mask)
        h2 = torch.div(h * mask, w)  # fault: two_ranks div
        loss_of(fc2(h2)).backward()
        e.write()
        dp_sync(m, e.dp, 4)


def bad_batch(e: Place) -> None:
    fc, _, m = two_linear()
    x = data(5 + e.rank)
    if e.rank == 1:
        x[1, 2] = torch.nan
    with e.step(m):
        h = fc(x)  # fault: bad_batch linear
        loss_of(m[1](torch.tanh(h))).backward()
        dp_sync(m, e.dp, 2)


def waited_for_later(e: Place) -> None:
    """Rank 1's exp overflows; its sum is on the way while other work goes on."""
    fc, fc2, m = two_linear()
    if e.rank == 1:
        hold(fc.bias, 3, 300)
    x = data(5 + e.rank)
    with e.step(m):
        h = torch.exp(fc(x) * 4)  # fault: waited_for_later exp
        st = torch.sum(h, 0).detach()
        w = dist.all_reduce(st, group=e.dp, async_op=True)
        u = torch.tanh(fc2(x))
        w.wait()
        loss_of(u * st).backward()
        dp_sync(m, e.dp, 2, wait_later=True)


def third_step(e: Place) -> None:
    fc, fc2, m = two_linear()
    for step in range(3):
        x = data(20 + 2 * step + e.rank)
        off = -50.0 if step == 2 and e.rank == 1 else 50.0
        with e.step(m):
            h = torch.log(F.relu(fc(x) + off))  # fault: third_step log
            loss_of(fc2(h)).backward()
            dp_sync(m, e.dp, 2)
        m.zero_grad()


def sharded_by_hand(e: Place) -> None:
    """Weights are gathered for each use, and their gradients scattered."""
    whole = [nn.Linear(WIDTH, WIDTH, bias=False).weight.detach() for _ in range(2)]
    shards = nn.ParameterList(w.chunk(2)[e.rank].clone() for w in whole)
    x, off = data(5 + e.rank), -50.0 if e.rank == 1 else 50.0
    with e.step(shards):
        h = F.relu(F.linear(x, GatherRows.apply(shards[0], e.dp)) + off)
        h = torch.log(h)  # fault: sharded_by_hand log
        y = F.linear(h, GatherRows.apply(shards[1], e.dp))
        loss_of(y).backward()


class Risky(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, off: float) -> Tensor:
        h = torch.log(F.relu(self.fc1(x) + off))  # fault: sharded_by_torch log
        return self.fc2(h)


def sharded_by_torch(e: Place) -> None:
    m = Risky()
    for part in (m.fc1, m.fc2, m):
        fully_shard(part)
    x, off = data(5 + e.rank), -50.0 if e.rank == 1 else 50.0
    with e.step(m):
        loss_of(m(x, off)).backward()


def update(e: Place) -> None:
    """Adam with eps 0 divides 0 by 0 for a unit that never fires."""
    fc, fc2, m = two_linear(4)
    hold(fc.bias, 2, -100)
    optimizer = torch.optim.Adam(m.parameters(), lr=0.1, eps=0.0)
    for step in range(2):
        x = data(50 + 2 * step + e.rank)
        with e.step(m):
            loss_of(fc2(F.relu(fc(x)))).backward()
            dp_sync(m, e.dp, 2)
            optimizer.step()  # fault: update Adam
        optimizer.zero_grad()


def killed(e: Place, *, told: bool = True) -> None:
    """Rank 0 makes -inf; rank 1 is killed in the middle of the step, told to end before or not."""
    fc, fc2, m = two_linear()
    x, off = data(5 + e.rank), -50.0 if e.rank == 0 else 50.0
    with e.step(m):
        h = torch.log(F.relu(fc(x) + off))  # fault: killed log
        st = torch.sum(h, 0).detach()
        dist.all_reduce(st, group=e.dp)
        loss = loss_of(fc2(h + st))
        if e.rank == 1:
            if told:
                e.write()
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
    os._exit(0)  # nobody is left to wait for


killed_at_once = partial(killed, told=False)


def clamped(e: Place) -> None:
    fc, fc2, m = two_linear()
    x = data(5 + e.rank)
    with e.step(m):
        h = fc(x)
        with torch.no_grad():
            s = torch.clamp(torch.exp(h * (1000.0 if e.rank == 1 else 1.0)), max=1e4)
        loss_of(fc2(h * s * 1e-4)).backward()
        dp_sync(m, e.dp, 2)
