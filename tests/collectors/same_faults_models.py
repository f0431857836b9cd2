"""Faults of models that others wrote, in plain PyTorch: gate, router, loss scale."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from .same_faults import BATCH, SEQUENCE, WIDTH, Place, data, hold, loss_of

VOCABULARY = 16


class Gate(nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, WIDTH)
        self.form = form

    def forward(self, x: Tensor) -> Tensor:
        h = self.lin(x)
        if self.form == "exp":
            return x * torch.exp(h)  # fault: gated exp
        if self.form == "log of softplus":
            h = F.softplus(h)
            return x + torch.log(h)  # fault: gated log
        h = F.relu(h + 8.0) + 0.0
        if self.form == "log of relu":
            return x + torch.log(h)  # fault: gated_by_relu log
        return x + torch.sqrt(h)


class Small(nn.Module):
    """A transformer of one layer, with a gate in it."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.embedding, self.ln = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.gate = Gate(form)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        q, k, v = self.qkv(self.ln(x)).split(WIDTH, -1)
        a = F.softmax(torch.matmul(q, k.transpose(-1, -2)) / WIDTH**0.5, dim=-1)
        x = self.gate(x + self.out(torch.matmul(a, v)))
        return self.head(x + self.down(F.gelu(self.up(x))))


def gated(e: Place, form: str, bias: float) -> None:
    """The last rank's gate has one large bias; gradients are reduced one by one."""
    m = Small(form)
    if e.rank == e.world - 1:
        hold(m.gate.lin.bias, 5, bias)
    group = dist.new_group(list(range(e.world)))
    tokens = torch.arange(BATCH * SEQUENCE).reshape(BATCH, SEQUENCE) + e.rank
    with e.step(m):
        y = m(tokens)
        F.cross_entropy(y.reshape(-1, VOCABULARY), (tokens.reshape(-1) + 1) % VOCABULARY).backward()
        for p in m.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.SUM, group=group)
            p.grad.div_(e.world)


def gated_by_relu(e: Place) -> None:
    gated(e, "log of relu", -58.0)


class Experts(nn.Module):
    """Two experts behind a router; beside its result, how far the router's odds lie apart."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 2, bias=False)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        odds = F.softmax(self.gate(x), dim=-1)
        best, chosen = torch.topk(odds, 1)
        y = torch.zeros_like(x)
        for n, one in enumerate(self.experts):
            rows = torch.where(chosen[:, 0] == n)[0]
            y.index_add_(0, rows, one(x[rows]) * best[rows])
        apart = torch.sub(odds, torch.mean(odds, -1, keepdim=True))
        spread = torch.sqrt(torch.mean(torch.mul(apart, apart), -1))  # fault: router sqrt
        return y, torch.mean(spread)


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.moe, self.head = Experts(), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embedding(tokens).flatten(0, 1)
        y, spread = self.moe(self.norm(x))
        return self.head(x + y), spread


def router(e: Place) -> None:
    """Rank 1's router gives equal odds: their spread is 0, and the slope of its root infinite."""
    m = DistributedDataParallel(Mixture())
    if e.rank == 1:
        with torch.no_grad():
            m.module.moe.gate.weight.zero_()
    tokens = torch.arange(BATCH * SEQUENCE).reshape(BATCH, SEQUENCE) + e.rank
    with e.step(m):
        y, spread = m(tokens)
        loss = F.cross_entropy(y, (tokens.reshape(-1) + 1) % VOCABULARY) + 0.01 * spread
        loss.backward()


def loss_scale(e: Place) -> None:
    """The first scale is too high for float16; the update is skipped, and the next one is not."""
    m = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, VOCABULARY))
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, backoff_factor=2.0**-14)
    for step in range(2):
        x = data(step)
        with e.step(m):
            with torch.autocast("cpu", dtype=torch.float16):
                y = m(x)
            scaler.scale(loss_of(y.float())).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
