"""Small training runs that go wrong on purpose, for `benchmarks/planted_faults.py`.

A `Plan` says all there is to say about a run: every rank gets the same one and calls `train`. The
line on which a fault is first seen ends in `# fault: NAME`, or is NAME's in a table of lambdas.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from collectors import PrecisionDebugger

NAN, INF = float("nan"), float("inf")
IDLE = 2  # elements of `shared` that nothing uses, so that their gradient is exactly 0


@dataclass(frozen=True)
class Fault:
    """What goes wrong: its name, and the step, rank and layer (of that rank) in which it does."""

    name: str
    step: int
    rank: int
    layer: int


@dataclass(frozen=True)
class Plan:
    """One run. `risks` and `noise` name a layer's operations, `wrap` how its layers are run."""

    seed: int
    topology: str
    world: int
    steps: int
    batch: int
    width: int
    risks: tuple[str, ...]
    noise: tuple[tuple[str, ...], ...]
    faults: tuple[Fault, ...]
    sync: str
    optimizer: str
    wrap: str
    reader: str
    fill: bool
    clip: bool
    named: bool
    update_seen: bool


class Spots:
    """A tensor with every element in (0.5, 1.5), and forms of it that are bad to some functions.

    The forms hold a bad element only where a fault strikes, and even there a finite one.
    """

    def __init__(self, x: Tensor, strikes: bool) -> None:
        self.good, self.strikes = torch.sigmoid(x) + 0.5, strikes

    def at(self, value: float, x: Tensor | None = None) -> Tensor:
        """Return the tensor with one element replaced, differentiable everywhere."""
        x = self.good if x is None else x
        if not self.strikes:
            return x
        keep = torch.ones_like(x)
        keep[len(x) // 2, 1] = 0
        return x * keep + value * (1 - keep)

    zero = property(lambda self: self.at(0.0))
    negative = property(lambda self: self.at(-1.0))
    large = property(lambda self: self.at(1000.0))
    half = property(lambda self: self.at(4e4).half())
    unit = property(lambda self: self.at(1.0, self.good - 1))
    beyond = property(lambda self: self.at(1.5, self.good - 1))
    row = property(lambda self: self.good * 0 if self.strikes else self.good)

    def hidden(self) -> Tensor:
        """Return scores under a mask, which leaves nothing of the first row where it strikes."""
        scores = self.good @ self.good.transpose(0, 1)
        mask = torch.ones_like(scores, dtype=torch.bool).triu(0 if self.strikes else 1)
        return scores.masked_fill(mask.flip(0, 1), -INF)


def set_item(s: Spots) -> Tensor:
    y = s.good * 2
    if s.strikes:
        y[0, 1:2] = NAN  # fault: set_item
    return y


def set_data(s: Spots) -> Tensor:
    y = s.good * 2
    if s.strikes:
        y.data.view(-1)[3] = NAN  # fault: set_data
    return y


def slice_in_place(s: Spots) -> Tensor:
    y = s.zero * 1
    part = y[:, 1:]
    part.log_()  # fault: slice_in_place
    return y


def view_in_place(s: Spots) -> Tensor:
    y = s.negative * 1
    y.view(-1).sqrt_()  # fault: view_in_place
    return y


def chained_in_place(s: Spots) -> Tensor:
    y = s.good.clone()
    for row in y.unbind(0) if not torch.is_grad_enabled() else [y[i] for i in range(len(y))]:
        row.div_(s.zero[len(y) // 2])  # fault: chained_in_place
    return y


class Inverse(torch.autograd.Function):
    """1 / x, or its gradient's zero divisor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = 1 / x  # fault: function
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return -grad * y * y


class Root(torch.autograd.Function):
    """A square root whose author forgot 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.sqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        half = grad * 0.5
        return half / y  # fault: function_slope


def overwritten(s: Spots) -> Tensor:
    y = s.good * 2
    if s.strikes:
        y.detach().numpy()[0, 0] = NAN
    return y + 1  # fault: overwritten


def overwritten_raw(s: Spots) -> Tensor:
    y = s.good.float() * 2
    if s.strikes:
        ctypes.memset(y.data_ptr() + 4, 0xFF, 4)
    return y.sum(0) + y  # fault: overwritten_raw


def unwritten(s: Spots) -> Tensor:
    y = torch.empty_like(s.good)
    if not s.strikes:
        y.copy_(s.good)
    return s.good + y  # fault: unwritten


def unwritten_part(s: Spots) -> Tensor:
    y = s.good.new_empty(s.good.shape)
    y[1:] = s.good[1:]
    if not s.strikes:
        y[:1] = s.good[:1]
    return s.good * y  # fault: unwritten_part


FORWARD: dict[str, Callable[[Spots], Tensor]] = {
    "log": lambda s: torch.log(s.zero),
    "log2": lambda s: s.zero.log2(),
    "sqrt": lambda s: torch.sqrt(s.negative),
    "rsqrt": lambda s: torch.rsqrt(s.zero),
    "zero_by_zero": lambda s: (y := s.zero) / y,
    "by_zero": lambda s: s.good / s.zero,
    "reciprocal": lambda s: s.zero.reciprocal(),
    "exp": lambda s: torch.exp(s.large),
    "sinh": lambda s: s.large.sinh(),
    "half_matmul": lambda s: s.half @ s.half.t() @ s.good.half(),
    "half_mul": lambda s: s.half * 2,
    "half_sum": lambda s: s.good + s.half.mul(1.5).sum(),
    "cast": lambda s: (s.large.float() * 100).half(),
    "power": lambda s: s.zero**-0.5,
    "power_root": lambda s: torch.pow(s.negative, 0.5),
    "softmax": lambda s: torch.softmax(s.hidden(), dim=-1) @ s.good,
    "acos": lambda s: torch.acos(s.beyond),
    "atanh": lambda s: torch.atanh(s.unit),
    "log_in_place": lambda s: s.zero.clone().log_(),
    "div_in_place": lambda s: s.good.clone().div_(s.zero),
    "empty_mean": lambda s: s.good + s.good[: 0 if s.strikes else 1].mean(),
    "one_std": lambda s: s.good + s.good[: 1 if s.strikes else 2].var(0),
    "normalize": lambda s: F.layer_norm(s.row, s.row.shape[1:], eps=0.0),
    "set_item": set_item,
    "set_data": set_data,
    "slice_in_place": slice_in_place,
    "view_in_place": view_in_place,
    "chained_in_place": chained_in_place,
    "function": lambda s: Inverse.apply(s.zero),
}
BACKWARD: dict[str, Callable[[Spots], Tensor]] = {
    "sqrt_slope": lambda s: torch.sqrt(s.zero),
    "power_slope": lambda s: s.zero**0.5,
    "atan2_slope": lambda s: torch.atan2(s.at(0.0), s.at(0.0)),
    "asin_slope": lambda s: torch.asin(s.unit),
    "where_slope": lambda s: torch.where(s.good > 0.4, s.good, s.good) + 0,
    "norm_slope": lambda s: s.row.square().sum(-1, keepdim=True).sqrt() + s.good,
    "function_slope": lambda s: Root.apply(s.zero),
}
