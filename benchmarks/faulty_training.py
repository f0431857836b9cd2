"""Models that go wrong on purpose, and what their ranks send, for `planted_faults.py`.

The line on which a fault is first seen ends in `# fault: NAME`, or is the one of NAME in a table.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from operator import setitem
from random import Random
from types import SimpleNamespace as Plan
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

NAN, INF = float("nan"), float("inf")
IDLE = 2  # elements of `shared` that nothing uses: their gradient is exactly 0
Move = Callable[[Tensor], Tensor]


class Spots:
    """A tensor of elements in (0.5, 1.5), and finite forms of it that some function cannot take.

    They differ from good ones only where a fault strikes; `left` is 0 there and 1 elsewhere.
    """

    def __init__(self, x: Tensor, strikes: bool) -> None:
        self.good, self.left = torch.sigmoid(x) + 0.5, 1 - int(strikes)

    def at(self, value: float, shift: float = 0.0) -> Tensor:
        """Return the tensor with one element replaced, and differentiable there too."""
        x = self.good + shift
        keep = torch.ones_like(x)
        keep[len(x) // 2, 1] = self.left
        return x * keep + value * (1 - keep)

    zero = property(lambda self: self.at(0.0))
    negative = property(lambda self: self.at(-1.0).contiguous())
    large = property(lambda self: self.at(1000.0))
    half = property(lambda self: self.at(4e4).half())
    unit = property(lambda self: self.at(1.0, shift=-1.0))
    beyond = property(lambda self: self.at(1.5, shift=-1.0))
    row = property(lambda self: self.good * self.left)

    def overwritten(self, raw: bool) -> Tensor:
        """Return a tensor that was changed behind the back of PyTorch."""
        y = self.good.float() * 2
        if not self.left:
            ctypes.memset(y.data_ptr() + 4, 0xFF, 4) if raw else y.detach().numpy().fill(NAN)
        return y


class Shaky(torch.autograd.Function):
    """1 / x if inverse, else the square root of x: bad forward or bad backward at 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, inverse: bool) -> Tensor:
        y = 1 / x if inverse else x.sqrt()  # fault: function
        ctx.inverse, _ = inverse, ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        return -grad * y * y if ctx.inverse else grad * 0.5 / y, None  # fault: function_slope


def masked(h: Tensor, first: int = 1) -> Tensor:
    """Return scores under a causal mask; it hides the whole first row if `first` is 0."""
    hidden = torch.ones(len(h), len(h), dtype=torch.bool).triu(first)
    return (h @ h.t()).masked_fill(hidden, -INF)


def partly_written(s: Spots) -> Tensor:
    y = s.good.new_empty(s.good.shape)
    y[1:] = s.good[1:]
    if s.left:
        y[:1].copy_(s.good[:1])
    return s.good * y  # fault: partly_written


Risk = Callable[[Spots], Tensor]
FORWARD: dict[str, Risk] = {
    "log": lambda s: torch.log(s.zero),
    "sqrt": lambda s: s.negative.sqrt(),
    "zero_by_zero": lambda s: (y := s.zero) / y,
    "by_zero": lambda s: s.good / s.zero,
    "exp": lambda s: torch.exp(s.large),
    "half_matmul": lambda s: s.half @ (2 * torch.eye(s.half.shape[1])).half(),
    "half_sum": lambda s: s.good + torch.stack([s.half, s.half]).sum(0),
    "half_cast": lambda s: (s.large.float() * 100).half(),
    "power": lambda s: s.zero**-0.5,
    "softmax": lambda s: torch.softmax(masked(s.good, s.left), dim=-1) @ s.good,
    "acos": lambda s: torch.acos(s.beyond),
    "log_in_place": lambda s: s.zero.clone().log_(),
    "div_in_place": lambda s: s.good.clone().div_(s.zero),
    "slice_in_place": lambda s: [y := s.zero * 1, y[:, 1:].log_()][0],
    "view_in_place": lambda s: [y := s.negative * 1, y.view(-1).chunk(2), y.T[1:].sqrt_()][0],
    "out": lambda s: s.good + torch.log(s.zero.detach(), out=torch.empty_like(s.good)),
    "data": lambda s: [y := s.good * 2, y.data[0, :2].fill_(1 if s.left else NAN)][0],
    "indexed": lambda s: [y := s.zero.clone(), setitem(y, y < 9, y[y < 9].log())][0],
    "empty_mean": lambda s: s.good + s.good[: s.left].mean(),
    "one_var": lambda s: s.good + s.good[: 1 + s.left].var(0),
    "normalize": lambda s: F.layer_norm(s.row, s.row.shape[1:], eps=0.0),
    "set_item": lambda s: [y := s.good * 2, setitem(y, (0, 1), 1.0 if s.left else NAN)][0],
    "function": lambda s: Shaky.apply(s.zero, True),
}
BACKWARD: dict[str, Risk] = {
    "sqrt_slope": lambda s: torch.sqrt(s.zero),
    "power_slope": lambda s: s.zero**0.5,
    "asin_slope": lambda s: torch.asin(s.unit),
    "hypot_slope": lambda s: torch.hypot(s.row, s.row) + s.good,
    "where_slope": lambda s: torch.where((y := s.zero) > 0, y.log(), y),
    "norm_slope": lambda s: s.row.square().sum(-1, keepdim=True).sqrt() + s.good,
    "function_slope": lambda s: Shaky.apply(s.zero, False),
    "hook": lambda s: [y := s.good * 1, y.register_hook(lambda grad: grad / s.left)][0] * 2,
}
GAPS: dict[str, Risk] = {
    "overwritten": lambda s: s.overwritten(raw=False) + 1,
    "overwritten_raw": lambda s: torch.cat([s.overwritten(raw=True), s.good])[: len(s.good)],
}
UNWRITTEN: dict[str, Risk] = {
    "unwritten": lambda s: s.good + (s.good if s.left else torch.empty_like(s.good)),
    "partly_written": partly_written,
}
RISKS = FORWARD | BACKWARD | GAPS | UNWRITTEN

NOISE: dict[str, Move] = {
    "gelu": F.gelu,
    "dropout": lambda h: F.dropout(h, 0.2),
    "layer_norm": lambda h: F.layer_norm(h, h.shape[1:]),
    "view": lambda h: h.reshape(-1)[:].view(h.shape),
    "transpose": lambda h: h.t().contiguous().t(),
    "cat": lambda h: torch.cat(h.chunk(2, dim=1), dim=1),
    "stack": lambda h: torch.stack([row * 2 for row in h]),
    "no_grad": lambda h: [y := h.clone(), torch.no_grad()(lambda x: x[:1].mul_(2))(y)][0],
    "sparse": lambda h: h + torch.sparse.mm(h.detach().float().to_sparse(), torch.eye(h.shape[1])),
    "in_place": lambda h: [y := h.clone(), y.t()[1].mul_(2)][0],
    "set_part": lambda h: [y := h.clone(), setitem(y, slice(2), y[:2] * 2)][0],
    "add_part": lambda h: [y := h.clone(), setitem(y, slice(2), y[:2].add_(1))][0],
}
BENIGN: dict[str, Move] = {
    "masked": lambda h: h + torch.softmax(masked(h), dim=-1).to(h.dtype) @ h,
    "clamp": lambda h: h + (h.detach().abs() * 1e3 + 100).exp().clamp(max=1.0),
    "nan_to_num": lambda h: h + ((h.detach() * 0) / 0).nan_to_num(0.0),
    "where": lambda h: torch.where(h.detach() > 1e30, h.detach() / 0, h),
    "largest": lambda h: torch.maximum(torch.full_like(h, -INF), h),
    "log_sum": lambda h: h + F.pad(h.detach(), (0, 1), value=-INF).logsumexp(1, keepdim=True),
    "best": lambda h: h + 0 * torch.minimum(torch.tensor(INF), h.detach().mean()),
}
READERS: dict[str, Move] = {  # of a batch
    "scale": lambda b: b * 2,
    "rows": lambda b: torch.stack([row for row in b]),  # noqa: C416
    "compare": lambda b: torch.where(b > 9, 0, b),
    "array": lambda b: torch.from_numpy(b.numpy()) + 0,
}


def operations(rng: Random) -> list[str]:
    """Return what a layer does: nothing after what is risky may take its infinity away."""
    before = rng.choices([*NOISE, *BENIGN], k=rng.randint(0, 2))
    risk = rng.choice([*FORWARD, *BACKWARD, *UNWRITTEN])
    return [*before, risk, *rng.choices([*NOISE], k=rng.randint(0, 2))]


class Carried(torch.autograd.Function):
    """Communication that autograd goes through: one way forward, another one backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Move, back: Move) -> Tensor:
        ctx.back = back
        return there(x.contiguous())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(grad.contiguous()), None, None


class Transfers:
    """What the ranks of a topology hand one another before and after a layer."""

    def __init__(self, plan: Plan) -> None:
        self.world, self.rank = plan.world, dist.get_rank()
        self.tensor = self.data = dist.group.WORLD
        if plan.topology == "tp_dp":
            groups = {pair: dist.new_group([*pair]) for pair in ((0, 1), (2, 3), (0, 2), (1, 3))}
            self.tensor, self.data = (g for pair, g in groups.items() if self.rank in pair)
        self.ways = {  # there and back again, before a layer and after it
            "tp": ((self.same, self.total), (self.total, self.same)),
            "tp_dp": ((self.same, self.total), (self.total, self.same)),
            "ep": ((self.exchange, self.exchange), (self.exchange, self.exchange)),
            "gather": ((self.gather, self.scatter), (self.scatter, self.gather)),
            "ring": ((self.same, self.same), (self.onward, self.backward)),
        }.get(plan.topology)

    def around(self, layer: Move, x: Tensor) -> Tensor:
        """Return what a layer gives, with what is sent before and after it."""
        if not self.ways:
            return layer(x)
        h = layer(Carried.apply(x, *self.ways[0]))
        return Carried.apply(h.float(), *self.ways[1])

    def same(self, x: Tensor) -> Tensor:
        return x.view_as(x)

    def total(self, x: Tensor) -> Tensor:
        x = x.clone()
        dist.all_reduce(x, group=self.tensor)
        return x

    def exchange(self, x: Tensor) -> Tensor:
        received = torch.empty_like(x)
        dist.all_to_all_single(received, x)
        return received

    def gather(self, x: Tensor) -> Tensor:
        whole = x.new_empty(len(x) * self.world, *x.shape[1:])
        dist.all_gather([*whole.chunk(self.world)], x)
        return whole

    def scatter(self, x: Tensor) -> Tensor:
        part = x.new_empty(len(x) // self.world, *x.shape[1:])
        dist.reduce_scatter(part, [*x.chunk(self.world)])
        return part

    def onward(self, x: Tensor) -> Tensor:
        received = torch.empty_like(x)
        sent = dist.isend(x, (self.rank + 1) % self.world)
        dist.irecv(received, (self.rank - 1) % self.world).wait()
        sent.wait()
        return received + x

    def backward(self, x: Tensor) -> Tensor:
        y, world = torch.empty_like(x), self.world
        sends = dist.P2POp(dist.isend, x, (self.rank - 1) % world)
        gets = dist.P2POp(dist.irecv, y, (self.rank + 1) % world)
        _ = [work.wait() for work in dist.batch_isend_irecv([sends, gets])]
        return y + x


def sum_half(total: Tensor, kind: str) -> None:
    """Sum a float16 tensor over all ranks, in place."""
    if kind == "all_reduce":
        dist.all_reduce(total)  # fault: all_reduce
    elif kind == "async":
        work = dist.all_reduce(total, async_op=True)  # fault: async
        total.new_zeros(3).sum()
        work.wait()
    elif kind == "scatter":
        part = total.new_empty(len(total) // dist.get_world_size())
        dist.reduce_scatter(part, [*total.chunk(dist.get_world_size())])  # fault: scatter
        dist.all_gather([*total.chunk(dist.get_world_size())], part)
    else:
        dist.reduce(total, 0)  # fault: reduce
        dist.broadcast(total, 0)


class Layer(nn.Module):
    """A linear layer, and something risky among other operations after it."""

    def __init__(self, plan: Plan, number: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(plan.width), nn.Linear(plan.width, plan.width)
        self.operations, self.wrap, self.strikes = plan.operations[number], plan.wrap, False

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)  # fault: norm
        h = self.linear(h)  # fault: linear
        for name in self.operations:
            if name in RISKS:
                h = RISKS[name](Spots(h, self.strikes)).to(h.dtype)
            else:
                h = (NOISE | BENIGN)[name](h)
        return h

    def run(self, x: Tensor) -> Tensor:
        """Return the same, called as the plan says."""
        if self.wrap == "checkpoint":
            return checkpoint(self, x, use_reentrant=False)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.wrap == "autocast"):
            return self(x)


class Model(nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.transfers = Transfers(plan)
        self.layers = nn.ModuleList(Layer(plan, number) for number in range(len(plan.operations)))
        self.shared = nn.Parameter(torch.full((plan.width + IDLE,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + self.transfers.around(layer.run, x)
        return F.layer_norm(x, x.shape[1:]) * self.shared[:-IDLE]  # fault: shared
