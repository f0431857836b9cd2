"""Small training runs that go wrong on purpose, for `benchmarks/planted_faults.py`.

A `Plan` says all there is to say about a run: every rank gets the same one and calls `train`. The
line on which a fault is first seen ends in `# fault: NAME`, or is NAME's in a table of lambdas.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

NAN, INF = float("nan"), float("inf")


class Spots:
    """A tensor of elements in (0.5, 1.5), and forms of it that are bad for some function.

    All are finite, and differ from good ones only where a fault strikes.
    """

    def __init__(self, x: Tensor, strikes: bool) -> None:
        self.good, self.strikes = torch.sigmoid(x) + 0.5, strikes

    def at(self, value: float, shift: float = 0.0) -> Tensor:
        """Return the tensor with one element replaced, and differentiable there too."""
        x = self.good + shift
        keep = torch.ones_like(x)
        keep[len(x) // 2, 1] = 1 - int(self.strikes)
        return x * keep + value * (1 - keep)

    zero = property(lambda self: self.at(0.0))
    negative = property(lambda self: self.at(-1.0))
    large = property(lambda self: self.at(1000.0))
    half = property(lambda self: self.at(4e4).half())
    unit = property(lambda self: self.at(1.0, shift=-1.0))
    beyond = property(lambda self: self.at(1.5, shift=-1.0))
    row = property(lambda self: self.good * (1 - int(self.strikes)))

    def scores(self) -> Tensor:
        """Return scores under a causal mask, which hides a whole row where it strikes."""
        scores = self.good @ self.good.t()
        hidden = torch.ones_like(scores, dtype=torch.bool).triu(1 - int(self.strikes))
        return scores.masked_fill(hidden, -INF)


class Inverse(torch.autograd.Function):
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
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.sqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad * 0.5 / y  # fault: function_slope


def set_item(s: Spots) -> Tensor:
    y = s.good * 2
    if s.strikes:
        y[0, 1:2] = NAN  # fault: set_item
    return y


def set_data(s: Spots) -> Tensor:
    y = s.good.contiguous() * 2
    if s.strikes:
        y.data.view(-1)[3] = NAN  # fault: set_data
    return y


def slice_in_place(s: Spots) -> Tensor:
    y = s.zero * 1
    part = y[:, 1:]
    part.log_()  # fault: slice_in_place
    return y


def view_in_place(s: Spots) -> Tensor:
    y = s.negative.contiguous() * 1
    y.view(-1).sqrt_()  # fault: view_in_place
    return y


def overwritten(s: Spots) -> Tensor:
    y = s.good.float() * 2
    if s.strikes:
        y.detach().numpy()[0, 0] = NAN
    return y + 1  # fault: overwritten


def overwritten_raw(s: Spots) -> Tensor:
    y = s.good.float() * 2
    if s.strikes:
        ctypes.memset(y.data_ptr() + 4, 0xFF, 4)
    return torch.cat([y, y]).narrow(0, 0, len(y))  # fault: overwritten_raw


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


def unwritten_copy(s: Spots) -> Tensor:
    y = torch.empty_like(s.good)
    y[1:].copy_(s.good[1:])
    if not s.strikes:
        y[0].copy_(s.good[0])
    return s.good * y  # fault: unwritten_copy


def unwritten_out(s: Spots) -> Tensor:
    y = torch.empty(len(s.good) + 1, s.good.shape[1], dtype=s.good.dtype)
    torch.mul(s.good.detach(), 2, out=y[1:])
    return s.good + y[1 - int(s.strikes) :][: len(s.good)]  # fault: unwritten_out


def unwritten_masked(s: Spots) -> Tensor:
    y = torch.empty_like(s.good)
    mask = torch.ones_like(y, dtype=torch.bool)
    mask[0, 1] = not s.strikes
    y[mask] = s.good[mask]
    return s.good * y  # fault: unwritten_masked


def through_item(s: Spots) -> Tensor:
    low = torch.log(s.zero.min())  # fault: through_item
    factor = low.item()
    return s.good * factor


def metric(s: Spots) -> Tensor:
    with torch.no_grad():
        torch.log(s.zero).mean()  # fault: metric
    return s.good * 1


def chunk_in_place(s: Spots) -> Tensor:
    y = s.zero.detach().clone()
    low, high = y.chunk(2, dim=1)
    high.mul_(2)
    low.log_()  # fault: chunk_in_place
    return s.good + y


def transposed(s: Spots) -> Tensor:
    y = s.zero.detach().clone()
    y.T.reciprocal_()  # fault: transposed
    return s.good + y


def masked_set(s: Spots) -> Tensor:
    y = s.zero.clone()
    mask = y < 2
    part = y[mask].log()  # fault: masked_set
    y[mask] = part
    return y


def scattered(s: Spots) -> Tensor:
    y = s.good.clone()
    part = s.zero[:, 1:2].rsqrt()  # fault: scattered
    return y.scatter_(1, torch.zeros(len(y), 1, dtype=torch.long), part)


def out(s: Spots) -> Tensor:
    y = torch.empty_like(s.good)
    torch.log(s.zero.detach(), out=y)  # fault: out
    return s.good + y


def each(s: Spots) -> Tensor:
    parts = torch._foreach_log([row.clone() for row in s.zero])  # fault: each
    return torch.stack(list(parts))


def swapped(s: Spots) -> Tensor:
    y = s.good * 2
    bad = s.zero.detach().log()  # fault: swapped
    y.data = bad
    return y + 0


def hooked(s: Spots) -> Tensor:
    y = s.good * 1

    def hook(grad: Tensor) -> Tensor:
        return grad / (1 - int(s.strikes))  # fault: hooked

    y.register_hook(hook)
    return y * 2


Risk = Callable[[Spots], Tensor]
FORWARD: dict[str, Risk] = {
    "log": lambda s: torch.log(s.zero),
    "log2": lambda s: s.zero.log2(),
    "sqrt": lambda s: torch.sqrt(s.negative),
    "rsqrt": lambda s: torch.rsqrt(s.zero),
    "zero_by_zero": lambda s: (y := s.zero) / y,
    "by_zero": lambda s: s.good / s.zero,
    "reciprocal": lambda s: s.zero.reciprocal(),
    "exp": lambda s: torch.exp(s.large),
    "sinh": lambda s: s.large.sinh(),
    "half_matmul": lambda s: s.half @ (2 * torch.eye(s.half.shape[1])).half(),
    "half_mul": lambda s: s.half * 2,
    "half_sum": lambda s: s.good + torch.stack([s.half, s.half]).sum(0),
    "cast": lambda s: (s.large.float() * 100).half(),
    "power": lambda s: s.zero**-0.5,
    "power_root": lambda s: torch.pow(s.negative, 0.5),
    "softmax": lambda s: torch.softmax(s.scores(), dim=-1) @ s.good,
    "acos": lambda s: torch.acos(s.beyond),
    "atanh": lambda s: torch.atanh(s.unit),
    "log_in_place": lambda s: s.zero.clone().log_(),
    "div_in_place": lambda s: s.good.clone().div_(s.zero),
    "empty_mean": lambda s: s.good + s.good[: 1 - int(s.strikes)].mean(),
    "one_var": lambda s: s.good + s.good[: 2 - int(s.strikes)].var(0),
    "normalize": lambda s: F.layer_norm(s.row, s.row.shape[1:], eps=0.0),
    "set_item": set_item,
    "set_data": set_data,
    "slice_in_place": slice_in_place,
    "view_in_place": view_in_place,
    "function": lambda s: Inverse.apply(s.zero),
    "through_item": through_item,
    "metric": metric,
    "chunk_in_place": chunk_in_place,
    "transposed": transposed,
    "masked_set": masked_set,
    "scattered": scattered,
    "out": out,
    "each": each,
    "swapped": swapped,
    "complex": lambda s: s.good + torch.complex(z := s.zero.float(), z * 0).log().abs(),
    "ignored": lambda s: (
        s.good
        + F.cross_entropy(s.good.float(), torch.full((len(s.good),), -100 if s.strikes else 1))
    ),
    "diagonal": lambda s: (
        [y := s.zero.expand(1, *s.good.shape).clone(), y.diagonal(0, 0, 2).log_()][0][0]
        if False
        else [y := s.zero.clone(), y.as_strided((len(y),), (y.stride(0),), 1).log_()][0]
    ),
    "penalty": lambda s: (
        s.good + torch.autograd.grad(torch.sqrt(y := s.zero.detach().requires_grad_()).sum(), y)[0]
    ),
    "chain": lambda s: s.zero.add(0).mul(1).log().neg().abs(),
}
BACKWARD: dict[str, Risk] = {
    "sqrt_slope": lambda s: torch.sqrt(s.zero),
    "power_slope": lambda s: s.zero**0.5,
    "hypot_slope": lambda s: torch.hypot(s.row, s.row) + s.good,
    "asin_slope": lambda s: torch.asin(s.unit),
    "where_slope": lambda s: torch.where((y := s.zero) > 0, y.log(), y),
    "norm_slope": lambda s: s.row.square().sum(-1, keepdim=True).sqrt() + s.good,
    "function_slope": lambda s: Root.apply(s.zero),
    "hooked": hooked,
}
GAPS: dict[str, Risk] = {"overwritten": overwritten, "overwritten_raw": overwritten_raw}
UNWRITTEN: dict[str, Risk] = {
    "unwritten": unwritten,
    "unwritten_part": unwritten_part,
    "unwritten_copy": unwritten_copy,
    "unwritten_out": unwritten_out,
    "unwritten_masked": unwritten_masked,
}
RISKS = FORWARD | BACKWARD | GAPS | UNWRITTEN


def online_softmax(h: Tensor) -> Tensor:
    most, total = h.new_full((len(h), 1), -INF), h.new_zeros(len(h), 1)
    for part in h.detach().chunk(2, dim=1):
        new = torch.maximum(most, part.amax(dim=1, keepdim=True))
        total = total * torch.exp(most - new) + torch.exp(part - new).sum(1, keepdim=True)
        most = new
    return h + 1 / total


def in_place(h: Tensor) -> Tensor:
    y = h.clone()
    y[:, :2] += 1
    y.t()[1].mul_(0.5)
    return y


def data(h: Tensor) -> Tensor:
    y = h * 1
    y.data.mul_(0.5)
    z = y.detach()
    z[0].add_(0.1)
    return y + 0


@torch.no_grad()
def statistics(h: Tensor) -> Tensor:
    a, b = h.clone().chunk(2, dim=1)
    a.sub_(a.mean())
    b.copy_(a)
    return torch.stack([a.std(), b.max()])


def no_grad(h: Tensor) -> Tensor:
    return h + 0 * statistics(h).mean().item()


def buffered(h: Tensor) -> Tensor:
    y = torch.empty_like(h)
    y[:1] = h[:1]
    y[1:] = h[1:]
    return y


def masked(h: Tensor) -> Tensor:
    future = torch.ones(len(h), len(h), dtype=torch.bool).triu(1)
    weights = torch.softmax((h @ h.t()).masked_fill(future, -INF), dim=-1)
    return h + weights.to(h.dtype) @ h


NOISE: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "dropout": lambda h: F.dropout(h, 0.2),
    "layer_norm": lambda h: F.layer_norm(h, h.shape[1:]),
    "view": lambda h: h.reshape(-1)[:].view(h.shape),
    "transpose": lambda h: h.t().contiguous().t(),
    "cat": lambda h: torch.cat(h.chunk(2, dim=1), dim=1),
    "stack": lambda h: torch.stack([row * 2 for row in h]),
    "einsum": lambda h: torch.einsum("ij,jk->ik", h, torch.eye(h.shape[1], dtype=h.dtype)),
    "pick": lambda h: h.index_select(0, torch.arange(len(h)).flip(0)),
    "most": lambda h: h + h.topk(2, dim=1).values.mean(),
    "in_place": in_place,
    "sparse": lambda h: h + torch.sparse.mm(h.detach().float().to_sparse(), torch.eye(h.shape[1])),
    "fft": lambda h: torch.fft.irfft(torch.fft.rfft(h.float()), n=h.shape[1]),
    "data": data,
    "no_grad": no_grad,
    "buffered": buffered,
}
BENIGN: dict[str, Callable[[Tensor], Tensor]] = {
    "masked": masked,
    "online_softmax": online_softmax,
    "clamp": lambda h: h + (h.detach().abs() * 1e3 + 100).exp().clamp(max=1.0),
    "nan_to_num": lambda h: h + ((h.detach() * 0) / 0).nan_to_num(0.0),
    "where": lambda h: torch.where(h.detach() > 1e30, h.detach() / 0, h),
    "largest": lambda h: torch.maximum(torch.full_like(h, -INF), h),
    "log_sum": lambda h: h + F.pad(h.detach(), (0, 1), value=-INF).logsumexp(1, keepdim=True),
    "best": lambda h: h + 0 * torch.minimum(torch.tensor(INF), h.detach().mean()),
}
