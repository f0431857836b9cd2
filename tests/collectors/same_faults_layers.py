"""Layers of the planted faults, split over ranks by hand as in Megatron-LM."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .same_faults import SEQUENCE, WIDTH

Group = dist.ProcessGroup | None


class CopyTP(torch.autograd.Function):
    """The same forward; backward, the sum over the group."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        gradient = gradient.clone()
        dist.all_reduce(gradient, group=ctx.group)
        return gradient, None


class ReduceTP(torch.autograd.Function):
    """The sum over the group forward; backward, the same."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class GatherTP(torch.autograd.Function):
    """All ranks' columns side by side; backward, this rank's own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, x.contiguous(), group=group)
        return torch.cat(parts, dim=-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        parts = gradient.chunk(dist.get_world_size(ctx.group), dim=-1)
        return parts[dist.get_rank(ctx.group)].contiguous(), None


class GatherRows(torch.autograd.Function):
    """All ranks' rows one after another; backward, this rank's rows of the summed gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group, ctx.rows = group, len(x)
        whole = x.new_empty(len(x) * dist.get_world_size(group), *x.shape[1:])
        dist.all_gather_into_tensor(whole, x.contiguous(), group=group)
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        own = gradient.new_empty(ctx.rows, *gradient.shape[1:])
        dist.reduce_scatter_tensor(own, gradient.contiguous(), group=ctx.group)
        return own, None


class AllToAll(torch.autograd.Function):
    """One row to each rank, and one from each; the gradients go back the same way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        result = torch.empty_like(x)
        dist.all_to_all_single(result, x.contiguous(), group=group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        result = torch.empty_like(gradient)
        dist.all_to_all_single(result, gradient.contiguous(), group=ctx.group)
        return result, None


class RMSNorm(nn.Module):
    def __init__(self, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        var = torch.mean(x * x, -1, keepdim=True)
        return x * torch.rsqrt(var + self.eps) * self.weight  # fault: pipeline rsqrt


class Mlp(nn.Module):
    def __init__(self, group: Group) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        h = F.gelu(self.fc1(CopyTP.apply(x, self.group)))
        return ReduceTP.apply(self.fc2(h), self.group)  # fault: bad_weight linear


class Attention(nn.Module):
    """Causal attention; `hidden` is what stands in place of a score that must not count."""

    def __init__(self, group: Group, hidden: float) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 12, bias=False)
        self.proj = nn.Linear(4, WIDTH, bias=False)
        self.group, self.hidden = group, hidden

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = torch.chunk(self.qkv(x), 3, -1)
        s = torch.matmul(q, k.transpose(-1, -2)) / 2
        future = torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1)
        s = s.masked_fill(future, self.hidden)
        return ReduceTP.apply(self.proj(torch.matmul(torch.softmax(s, -1), v)), self.group)


class Block(nn.Module):
    def __init__(self, group: Group) -> None:
        super().__init__()
        self.ln1, self.ln2 = RMSNorm(), RMSNorm()
        self.attention, self.mlp = Attention(group, -1e4), Mlp(group)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Energy(nn.Module):
    """Two linear layers with log(softplus) between them, split over the group."""

    def __init__(self, group: Group = None) -> None:
        super().__init__()
        self.norm = RMSNorm()
        self.fc1, self.fc2 = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        h = F.softplus(self.fc1(self.norm(x)))
        h = torch.log(h)  # fault: energy log
        return ReduceTP.apply(self.fc2(h), self.group)
