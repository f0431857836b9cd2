"""Faults in layers that are split over ranks, with and without replicas beside them."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .same_faults import BATCH, SEQUENCE, WIDTH, Place, data, dp_sync, hold, loss_of
from .same_faults_layers import Attention, Block, CopyTP, Energy, GatherTP, Mlp, ReduceTP

INF = float("inf")


def clean_block(e: Place) -> None:
    m = Block(e.tp)
    x = data(1, BATCH, SEQUENCE, WIDTH)
    with e.step(m):
        loss_of(m(x)).backward()


def clean_mlp(e: Place) -> None:
    m = Mlp(e.tp)
    x = data(e.replica)
    with e.step(m):
        loss_of(m(x)).backward()
        dp_sync(m, e.dp, 2)


def energy(e: Place) -> None:
    """Rank 2's softplus underflows to 0; all ranks are one group, the default one."""
    m = Energy()
    if e.rank == 2:
        hold(m.fc1.bias, 3, -200)
        m.fc2.register_forward_pre_hook(lambda module, args: e.write())
    x = data(1)
    with e.step(m):
        loss_of(m(x)).backward()


class Layer(nn.Module):
    def __init__(self, e: Place) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.group = e.tp

    def forward(self, x: Tensor) -> Tensor:
        h = F.softplus(self.fc1(CopyTP.apply(x, self.group)))
        h = torch.log(h)  # fault: second_layer log
        return x + ReduceTP.apply(self.fc2(h), self.group)


def second_layer(e: Place) -> None:
    """The first layer and its reduction are clean."""
    m = nn.Sequential(Layer(e), Layer(e))
    if e.rank == 2:
        hold(m[1].fc1.bias, 3, -300)
    x = data(5 + e.replica)
    with e.step(m):
        loss_of(m(x)).backward()
        dp_sync(m, e.dp, 2)


def both_groups(e: Place) -> None:
    """Rank 3: one group takes it to rank 2, the other to ranks 0 and 1."""
    fc1, fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
    m = nn.Sequential(fc1, fc2)
    if e.rank == 3:
        hold(fc1.bias, 3, -300)
    x = data(5 + e.replica)
    with e.step(m):
        h = torch.log(F.softplus(fc1(x)))  # fault: both_groups log
        y = ReduceTP.apply(fc2(h), e.tp)
        loss_of(y).backward()
        dp_sync(m, e.dp, 2)


def slope_of_root(e: Place) -> None:
    """Rank 1: sqrt(0) is finite, its slope is not, and 0 times it is NaN."""
    fc0, fc1, fc2 = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
    m = nn.ModuleList([fc0, fc1, fc2])
    with torch.no_grad():
        fc1.weight.mul_(0.1)
        fc1.bias.fill_(1.0)
    keep = torch.ones(WIDTH)
    keep[3] = 0 if e.rank == 1 else 1
    x = data(1)
    with e.step(m):
        h = CopyTP.apply(fc0(x), e.tp)
        h = torch.mul(fc1(h), keep)
        h = torch.sqrt(h)  # fault: slope_of_root sqrt
        loss_of(ReduceTP.apply(fc2(h), e.tp)).backward()


def absorbed_slope(e: Place) -> None:
    """As before, behind a relu that makes the gradient 0 where it is infinite."""
    fc0, fc1, fc2 = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
    m = nn.ModuleList([fc0, fc1, fc2])
    with torch.no_grad():
        fc1.weight.mul_(0.1)
        fc1.bias.fill_(1.0)
    hold(fc1.bias, 3, -50 if e.rank == 1 else 1)
    x = data(1)
    with e.step(m):
        h = CopyTP.apply(fc0(x), e.tp)
        h = torch.sqrt(F.relu(fc1(h)))
        loss_of(ReduceTP.apply(fc2(h), e.tp)).backward()


def bad_weight(e: Place) -> None:
    """Rank 0 loaded a shard of a checkpoint with a NaN in it."""
    m = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), Mlp(e.tp))
    if e.rank == 0:
        hold(m[2].fc2.weight, (0, 0), torch.nan)
    x = data(5)
    with e.step(m):
        loss_of(m(x)).backward()


def masked(e: Place) -> None:
    m = Attention(e.tp, -INF)
    x = data(1, 1, SEQUENCE, WIDTH)
    with e.step(m):
        loss_of(m(x)).backward()


def masked_then_divided(e: Place) -> None:
    """Masks as before on both ranks; later, on rank 1 alone, 0 / 0."""
    attention, fc = Attention(e.tp, -INF), nn.Linear(WIDTH, WIDTH)
    m = nn.ModuleList([attention, fc])
    off = 1000.0 if e.rank == 1 else -1.0
    x = data(1, 1, SEQUENCE, WIDTH)
    with e.step(m):
        u = F.relu(fc(attention(x)) - off)
        n = torch.sum(u, -1, keepdim=True)
        u = torch.div(u, n)  # fault: masked_then_divided div
        loss_of(ReduceTP.apply(u, e.tp)).backward()


def half_scores(e: Place) -> None:
    """Rank 1: products of float16 go beyond what it holds."""
    fc = nn.Linear(WIDTH, WIDTH).half()
    x = data(5, SEQUENCE, WIDTH).half()
    with e.step(fc):
        q = fc(x) * (900.0 if e.rank == 1 else 1.0)
        s = torch.matmul(q, q.transpose(-1, -2))  # fault: half_scores matmul
        y = GatherTP.apply(torch.matmul(torch.softmax(s, -1), x), e.tp)
        loss_of(y.float()).backward()


def metric(e: Place) -> None:
    """Rank 1: a number for the log, after all communication."""
    m = Mlp(e.tp)
    x = data(1)
    with e.step(m):
        y = m(x)
        loss_of(y).backward()
        if e.rank == 1:
            torch.log(F.relu(y.detach() - 1e4)).mean()  # fault: metric log
