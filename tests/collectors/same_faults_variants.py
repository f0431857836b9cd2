"""Variants of the planted faults: an overflow of rank 1 goes to rank 0 by an unusual way."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch.distributed.distributed_c10d import _coalescing_manager

from .same_faults import Place, data, hold, loss_of
from .same_faults_data import two_linear


def poll(work: dist.Work) -> None:
    while not work.is_completed():
        time.sleep(0.001)


def future(work: dist.Work) -> None:
    work.get_future().wait()


def completed(e: Place, by: Callable[[dist.Work], None], *, late: bool = False) -> None:
    """`by` waits for the reduction, in the same step or in the next one."""
    fc, fc2, m = two_linear()
    if e.rank == 1:
        hold(fc.bias, 3, 300)
    x = data(5 + e.rank)
    with e.step(m):
        h = torch.exp(fc(x) * 4)  # fault: completed exp
        st = torch.sum(h, 0).detach()
        work = dist.all_reduce(st, group=e.dp, async_op=True)
        if not late:
            by(work)
            loss_of(torch.tanh(fc2(x)) * st).backward()
    if late:
        with e.step(m):
            by(work)
            loss_of(torch.tanh(fc2(x)) * st).backward()


def coalesced(e: Place, *, later: bool) -> None:
    """Gradients are reduced in one go, as Megatron-LM does it, at once or to be waited for."""
    fc, fc2, m = two_linear()
    if e.rank == 1:
        hold(fc.bias, 3, -300)
    x = data(5 + e.rank)
    with e.step(m):
        h = F.softplus(fc(x))
        h = torch.log(h)  # fault: coalesced log
        loss_of(fc2(h)).backward()
        with _coalescing_manager(group=e.dp, async_ops=later) as manager:
            for p in m.parameters():
                dist.all_reduce(p.grad, group=e.dp)
        if later:
            manager.wait()
        for p in m.parameters():
            p.grad.div_(2)


WAYS = {
    "wait": partial(completed, by=lambda work: work.wait()),
    "poll": partial(completed, by=poll),
    "future": partial(completed, by=future),
    "wait in the next step": partial(completed, by=lambda work: work.wait(), late=True),
    "coalesced": partial(coalesced, later=False),
    "coalesced and waited for": partial(coalesced, later=True),
}
