"""Faults that other collectives spread: broadcast, gather and scatter, all-to-all, mixed groups."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .same_faults import BATCH, WIDTH, Place, data, dp_sync, hold, loss_of
from .same_faults_layers import AllToAll


def handed_out(e: Place) -> None:
    """Rank 0 broadcasts a statistic to all."""
    fc, fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    x = data(5 + e.rank)
    with e.step(nn.Sequential(fc, fc2)):
        h = F.relu(fc(x))
        z = torch.zeros(WIDTH)
        if e.rank == 0:
            z = torch.log(torch.mean(F.relu(h - 100.0), 0)).detach()  # fault: handed_out log
        dist.broadcast(z, src=0)
        loss_of(fc2(h + z)).backward()


def handed_out_in_a_pair(e: Place) -> None:
    """Rank 2 broadcasts in its own group of two; gradients take it to the other two."""
    fc = nn.Linear(WIDTH, WIDTH)
    x, src = data(5 + e.replica), 2 * e.replica
    off = -100.0 if e.rank == 2 else 100.0
    with e.step(fc):
        h = fc(x)
        z = torch.ones(WIDTH)
        if e.rank == src:
            low = F.relu(h + off)
            z = torch.log(torch.mean(low, 0)).detach()  # fault: handed_out_in_a_pair log
        dist.broadcast(z, src=src, group=e.tp)
        loss_of(h * z).backward()
        dp_sync(fc, e.dp, 2)


def not_a_number(*shape: int) -> Tensor:
    """Return memory that means nothing yet."""
    return torch.full(shape, torch.nan)


def garbage_in_buffers(e: Place) -> None:
    """Everything that is NaN before a communication call is overwritten by it."""
    fc = nn.Linear(WIDTH, WIDTH)
    x = data(5)
    with e.step(fc):
        h = fc(x).detach()
        if e.rank == 0:
            dist.send(h, 1)
        else:
            b = not_a_number(BATCH, WIDTH)
            dist.recv(b, 0)
            h = h + b
        z = h.clone() if e.rank == 0 else not_a_number(BATCH, WIDTH)
        dist.broadcast(z, src=0)
        g = not_a_number(2 * BATCH, WIDTH)
        dist.all_gather_into_tensor(g, h)
        a = not_a_number(BATCH, WIDTH)
        dist.all_to_all_single(a, h)
        parts = [not_a_number(BATCH, WIDTH) for _ in range(2)]
        dist.all_gather(parts, h)
        loss_of(fc(z + a + torch.sum(g, 0) + parts[1])).backward()


def expert(e: Place) -> None:
    """Rank 2's expert overflows; what it returns goes to every rank."""
    gate, ex, head = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
    if e.rank == 2:
        hold(ex.bias, 3, 120)
    x = data(5 + e.rank, e.world, WIDTH)
    with e.step(nn.ModuleList([gate, ex, head])):
        t = AllToAll.apply(gate(x), e.dp)
        p = torch.exp(ex(t))  # fault: expert exp
        t = torch.div(p, torch.sum(p, -1, keepdim=True))
        loss_of(head(AllToAll.apply(t, e.dp))).backward()


def collected_and_dealt(e: Place) -> None:
    """Rank 3's value goes to rank 0, and from there to all."""
    fc, fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    x, off = data(5 + e.rank), -50.0 if e.rank == 3 else 5.0
    with e.step(nn.Sequential(fc, fc2)):
        h = torch.log(F.relu(fc(x) + off)).detach()  # fault: collected_and_dealt log
        got = [torch.empty(BATCH, WIDTH) for _ in range(4)] if e.rank == 0 else None
        dist.gather(h, got, dst=0)
        r, dealt = torch.empty(BATCH, WIDTH), None
        if got:
            mu = torch.mean(torch.stack(got), 0)
            dealt = [mu * (i + 1) for i in range(4)]
        dist.scatter(r, dealt, src=0)
        loss_of(fc2(r)).backward()


def extra_in_one_group(e: Place) -> None:
    """Ranks 0 and 1 have communicated twice when all ranks do so for the first time."""
    fc, fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    if e.rank == 3:
        hold(fc.bias, 3, -300)
    x = data(5 + e.rank)
    with e.step(nn.Sequential(fc, fc2)):
        for _ in range(2 if e.rank < 2 else 0):
            x = x.clone()
            dist.all_reduce(x, group=e.tp)
            x = x * 0.5
        h = torch.log(F.softplus(fc(x)))  # fault: extra_in_one_group log
        s = torch.mean(h, 0).detach()
        dist.all_reduce(s)
        loss_of(fc2(h + s)).backward()
