"""The parallel pieces of the example: where a rank stands, and layers that are split over ranks.

Ranks are numbered as in Megatron-LM: tensor-parallel neighbours first, then replicas, then stages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


@dataclass(frozen=True)
class Place:
    """Where this rank stands: sizes, its own coordinates, and its groups (None: it is alone)."""

    tp: int
    pp: int
    dp: int
    shard: int
    replica: int
    stage: int
    tp_group: dist.ProcessGroup | None
    dp_group: dist.ProcessGroup | None

    @classmethod
    def of(cls, parallel: str, tp: int, pp: int, dp: int) -> Place:
        """Make every group of the run, and return this rank's place.

        A size of 0 follows from the kind of parallelism and the number of ranks.
        """
        rank, world = dist.get_rank(), dist.get_world_size()
        tp = tp or (min(2, world) if parallel == "tp" else 1)
        pp = pp or (2 if parallel == "pp" else 1)
        dp = dp or world // (tp * pp)
        if tp * pp * dp != world:
            sys.exit(f"tp {tp} x pp {pp} x dp {dp} does not make {world} ranks")
        if parallel in ("fsdp2", "ep") and dp != world:
            sys.exit(f"{parallel} takes all ranks: leave --tp, --pp and --dp out")
        grid = torch.arange(world).view(pp, dp, tp)
        tp_group = _own_group(rank, grid.reshape(-1, tp))
        dp_group = _own_group(rank, grid.transpose(1, 2).reshape(-1, dp))
        stage, replica, shard = (grid == rank).nonzero()[0].tolist()
        return cls(tp, pp, dp, shard, replica, stage, tp_group, dp_group)

    @property
    def first(self) -> bool:
        """Whether this rank reads the tokens."""
        return self.stage == 0

    @property
    def last(self) -> bool:
        """Whether this rank has the loss."""
        return self.stage == self.pp - 1

    def neighbour(self, stages: int) -> int:
        """Return the rank that stands so many stages after this one."""
        return ((self.stage + stages) * self.dp + self.replica) * self.tp + self.shard


def _own_group(rank: int, groups: Tensor) -> dist.ProcessGroup | None:
    """Make the groups, one a row, on every rank alike; return the one that this rank is in."""
    own = None
    for ranks in groups.tolist() if groups.shape[1] > 1 else []:
        group = dist.new_group(ranks)
        if rank in ranks:
            own = group
    return own


class SumOfGradients(torch.autograd.Function):
    """The same tensor forward; backward, the sum of what every rank of the group sends back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        """Return x."""
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the sum over the group."""
        total = gradient.clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None


class SumOfOutputs(torch.autograd.Function):
    """Forward, the sum of what every rank of the group brings; the same gradient backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        """Return the sum over the group."""
        total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient."""
        return gradient, None


class Exchange(torch.autograd.Function):
    """Rows to the ranks they belong to; their gradients go the way back."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """Send the first sent[0] rows to rank 0 and so on; return the rows of ranks 0, 1, ..."""
        ctx.sent, ctx.received = sent, received
        result = rows.new_empty(sum(received), rows.shape[1])
        dist.all_to_all_single(result, rows.contiguous(), received, sent)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradients of the rows that this rank sent."""
        result = gradient.new_empty(sum(ctx.sent), gradient.shape[1])
        dist.all_to_all_single(result, gradient.contiguous(), ctx.sent, ctx.received)
        return result, None, None


class ColumnParallelLinear(nn.Module):
    """A linear layer of which each rank of the tensor-parallel group has a part of the outputs."""

    def __init__(self, inputs: int, outputs: int, place: Place) -> None:
        super().__init__()
        whole = nn.Linear(inputs, outputs, bias=False).weight.detach()
        self.weight = nn.Parameter(whole.chunk(place.tp, dim=0)[place.shard].clone())
        self.group = place.tp_group

    def forward(self, x: Tensor) -> Tensor:
        """Return this rank's part of the outputs."""
        if self.group is not None:
            x = SumOfGradients.apply(x, self.group)
        return F.linear(x, self.weight)


class RowParallelLinear(nn.Module):
    """A linear layer of which each rank of the tensor-parallel group has a part of the inputs."""

    def __init__(self, inputs: int, outputs: int, place: Place) -> None:
        super().__init__()
        whole = nn.Linear(inputs, outputs, bias=False).weight.detach()
        self.weight = nn.Parameter(whole.chunk(place.tp, dim=1)[place.shard].clone())
        self.group = place.tp_group

    def forward(self, x: Tensor) -> Tensor:
        """Return all outputs, the same on every rank of the group."""
        x = F.linear(x, self.weight)
        return x if self.group is None else SumOfOutputs.apply(x, self.group)


class ExpertParallel(nn.Module):
    """One expert on each rank; every token goes to the rank that its router picks, and back."""

    def __init__(self, width: int, expert: nn.Module, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.expert = expert
        self.experts = experts

    def forward(self, x: Tensor) -> Tensor:
        """Return what the experts made of x, weighted by the router: [batch, sequence, width]."""
        tokens = x.flatten(0, 1)
        weight, choice = torch.softmax(self.router(tokens), dim=-1).max(dim=-1)
        order = choice.argsort(stable=True)
        sent = torch.bincount(choice, minlength=self.experts)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        arrived = Exchange.apply(tokens[order], sent.tolist(), received.tolist())
        returned = Exchange.apply(self.expert(arrived), received.tolist(), sent.tolist())
        return (returned[order.argsort()] * weight.unsqueeze(-1)).view_as(x)


def fully_shard(parts: Iterable[nn.Module], model: nn.Module, whole: set[nn.Parameter]) -> None:
    """Hand parts of a model, then the rest of it, to FSDP2; what is in `whole` stays whole."""
    from torch.distributed import fsdp

    for part in parts:
        fsdp.fully_shard(part)
    fsdp.fully_shard(model, ignored_params=whole)
