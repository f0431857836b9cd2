"""Training of one rank, in every topology, for `benchmarks/planted_faults.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F  # noqa: N812
from faulty_operations import BENIGN, INF, NAN, NOISE, RISKS, Spots
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from collectors import PrecisionDebugger

IDLE = 2  # elements of `shared` that nothing uses: their gradient is exactly 0
Move = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Fault:
    """What goes wrong: its name, and the step, rank and layer (of that rank) in which it does."""

    name: str
    step: int
    rank: int
    layer: int


@dataclass(frozen=True)
class Plan:
    """One run; `wrap` is how its layers are called, `risk` and `noise` what each of them does."""

    seed: int
    topology: str
    world: int
    steps: int
    batch: int
    width: int
    risk: tuple[str, ...]
    noise: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    faults: tuple[Fault, ...]
    sync: str
    optimizer: str
    wrap: str
    reader: str
    fill: bool
    clip: bool
    named: bool
    update_seen: bool
    style: str
    micro: int


class Carried(torch.autograd.Function):
    """Communication that autograd goes through: one way forward, another one backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Move, back: Move) -> Tensor:
        ctx.back = back
        return there(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(grad.contiguous()), None, None


class Transfers:
    """What the ranks of a topology hand one another before and after a layer."""

    def __init__(self, plan: Plan) -> None:
        self.world, self.rank, self.topology = plan.world, dist.get_rank(), plan.topology
        self.style = plan.style
        pairs = [[0, 1], [2, 3], [0, 2], [1, 3]] if plan.topology == "tp_dp" else []
        self.tensor, self.data = dist.group.WORLD, dist.group.WORLD
        for number, pair in enumerate(pairs):
            group = dist.new_group(pair)
            if self.rank in pair:
                self.tensor, self.data = (group, self.data) if number < 2 else (self.tensor, group)

    def around(self, layer: Move, x: Tensor) -> Tensor:
        """Return a layer's result, with what this topology sends before and after it."""
        moves: dict[str, tuple[Move, Move]] = {
            "tp": (self.same, self.total),
            "tp_dp": (self.same, self.total),
            "ep": (self.exchange, self.exchange),
            "gather": (self.gather, self.scatter),
        }
        if self.topology == "ring":
            h = layer(x)
            return h + Carried.apply(h.contiguous(), self.onward, self.back)
        there, back = moves.get(self.topology, (None, None))
        if there is None:
            return layer(x)
        h = layer(Carried.apply(x, there, back))
        return Carried.apply(h.float().contiguous(), back, there)

    def same(self, x: Tensor) -> Tensor:
        return x.view_as(x)

    def total(self, x: Tensor) -> Tensor:
        if self.style == "functional":
            return funcol.all_reduce(x, "sum", self.tensor) * 1
        x = x.clone()
        dist.all_reduce(x, group=self.tensor)
        return x

    def exchange(self, x: Tensor) -> Tensor:
        if self.style == "functional":
            return funcol.all_to_all_single(x, None, None, self.tensor) * 1
        received = torch.empty_like(x)
        dist.all_to_all_single(received, x)
        return received

    def gather(self, x: Tensor) -> Tensor:
        if self.style == "functional":
            return funcol.all_gather_tensor(x, 0, self.tensor) * 1
        if self.style == "chunks":
            whole = torch.empty(len(x) * self.world, *x.shape[1:])
            dist.all_gather(list(whole.chunk(self.world)), x)
            return whole
        parts = [torch.empty_like(x) for _ in range(self.world)]
        dist.all_gather(parts, x)
        return torch.cat(parts)

    def scatter(self, x: Tensor) -> Tensor:
        if self.style == "functional":
            return funcol.reduce_scatter_tensor(x, "sum", 0, self.tensor) * 1
        part = x.new_empty(len(x) // self.world, *x.shape[1:])
        if self.style == "chunks":
            dist.reduce_scatter(part, list(x.chunk(self.world)))
        else:
            dist.reduce_scatter_tensor(part, x)
        return part

    def onward(self, x: Tensor) -> Tensor:
        received = torch.empty_like(x)
        works = [
            dist.isend(x, (self.rank + 1) % self.world),
            dist.irecv(received, (self.rank - 1) % self.world),
        ]
        for work in works:
            work.wait()
        return received

    def back(self, x: Tensor) -> Tensor:
        received = torch.empty_like(x)
        ends = (self.rank - 1) % self.world, (self.rank + 1) % self.world
        sends = [dist.P2POp(dist.isend, x, ends[0]), dist.P2POp(dist.irecv, received, ends[1])]
        for work in dist.batch_isend_irecv(sends):
            work.wait()
        return received


def sum_half(total: Tensor, kind: str) -> None:
    """Sum a float16 tensor over all ranks, in place."""
    if kind == "all_reduce":
        dist.all_reduce(total)  # fault: all_reduce
    elif kind == "async":
        work = dist.all_reduce(total, async_op=True)  # fault: async
        total.new_zeros(3).sum()
        work.wait()
    elif kind == "future":
        work = dist.all_reduce(total, async_op=True)  # fault: future
        work.get_future().wait()
    elif kind == "halves":
        cut = len(total) // 2
        works = [dist.all_reduce(part, async_op=True) for part in total.split(cut)]  # fault: halves
        for work in reversed(works):
            work.wait()
    elif kind == "scatter":
        part = total.new_empty(len(total) // dist.get_world_size())
        dist.reduce_scatter_tensor(part, total)  # fault: scatter
        dist.all_gather_into_tensor(total, part)
    else:
        dist.reduce(total, 0)  # fault: reduce
        dist.broadcast(total, 0)


class Layer(nn.Module):
    """A linear layer with something risky after it, and noise all around."""

    def __init__(self, plan: Plan, number: int) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(plan.width), nn.Linear(plan.width, plan.width)
        self.risk, (self.before, self.after) = plan.risk[number], plan.noise[number]
        self.wrap, self.strikes, self.armed = plan.wrap, False, True

    def forward(self, x: Tensor) -> Tensor:
        """Return [batch, width] for the same."""
        h = self.norm(x)  # fault: norm
        h = self.linear(h)  # fault: linear
        for name in self.before:
            h = (NOISE | BENIGN)[name](h)
        h = RISKS[self.risk](Spots(h, self.strikes and self.armed)).to(h.dtype)
        for name in self.after:
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
        self.layers = nn.ModuleList(Layer(plan, number) for number in range(len(plan.risk)))
        self.shared = nn.Parameter(torch.full((plan.width + IDLE,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + self.transfers.around(layer.run, x)
        return F.layer_norm(x, x.shape[1:]) * self.shared[:-IDLE]  # fault: shared


READERS: dict[str, Move] = {
    "scale": lambda b: b * 2,
    "columns": lambda b: b[:, :],
    "doubled": lambda b: torch.cat([b, b])[: len(b)],
    "double": lambda b: b.double().float(),
    "rows": lambda b: torch.stack([row for row in b]),  # noqa: C416
    "compare": lambda b: torch.where(b > 9, 0, b),
    "array": lambda b: torch.from_numpy(b.numpy()) + 0,
}


class Run:
    """The training of one rank."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.rank, self.struck = plan, dist.get_rank(), set[str]()
        self.model = Model(plan)
        self.called = self.model
        if plan.topology == "ddp":
            self.called = nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = None
        if plan.optimizer != "hand":
            make = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}[plan.optimizer]
            self.optimizer = make(self.model.parameters(), lr=1e-2, foreach=plan.named)

    def begin(self, step: int) -> tuple[Tensor, Tensor]:
        """Return this rank's batch and target; plant what goes wrong outside of the record."""
        plan, alike = self.plan, self.plan.topology in ("tp", "tp_dp", "pp")
        here = [f for f in plan.faults if (f.step, f.rank) == (step, self.rank)]
        self.struck = {f.name for f in here}
        for number, layer in enumerate(self.model.layers):
            layer.strikes = any((f.name, f.layer) == (layer.risk, number) for f in here)
        generator = torch.Generator().manual_seed(step if alike else step * 8 + self.rank)
        batch, target = torch.randn(2, plan.batch, plan.width, generator=generator)
        for name, tensor in (("batch", batch), ("target", target)):
            if name in self.struck:
                tensor[1, 2] = NAN
        layer = self.model.layers[max((f.layer for f in here), default=0)]
        weights = {"linear": layer.linear.weight, "norm": layer.norm.bias}
        for name, weight in (weights | {"shared": self.model.shared}).items():
            if name in self.struck:
                weight.detach().view(-1)[1] = NAN
        return batch, target

    def forward_backward(self, batch: Tensor, target: Tensor) -> None:
        rank, ends = self.rank, (0, self.plan.world - 1)
        first, last = (self.plan.topology != "pp" or rank == end for end in ends)
        if self.plan.topology == "root":
            for weight in self.model.parameters():
                dist.broadcast(weight.data, 0)  # fault: weights_root
            dist.broadcast(batch, 0)  # fault: batch_root
        for number in range(self.plan.micro):
            for layer in self.model.layers:
                layer.armed = number == self.plan.micro - 1
            self.micro_batch(batch, target, first, last)

    def micro_batch(self, batch: Tensor, target: Tensor, first: bool, last: bool) -> None:
        rank = self.rank
        if first:
            x = READERS[self.plan.reader](batch)
        else:
            x = torch.empty_like(batch)
            dist.recv(x, rank - 1)
            x.requires_grad_()
        y = self.called(x)
        if last:
            loss = F.mse_loss(y, target)  # fault: target
            loss.backward()
        else:
            dist.send(y.detach(), rank + 1)
            grad = torch.empty_like(y)
            dist.recv(grad, rank + 1)
            y.backward(grad)
        if not first:
            dist.send(x.grad, rank - 1)

    def reduce_gradients(self) -> bool:
        """Sum gradients over ranks; return whether the update may go on."""
        model, plan = self.model, self.plan
        if plan.topology in ("dp", "ring", "root", "tp_dp"):
            for weight in model.layers.parameters():
                dist.all_reduce(weight.grad, group=model.transfers.data)
                weight.grad /= plan.world
        grad = model.shared.grad
        total = F.pad(grad, (0, -len(grad) % plan.world)).half()
        if "sum" in self.struck or "skipped" in self.struck:
            total[plan.width - 1] += 4e4
        sum_half(total, plan.sync)
        model.shared.grad = total[: len(grad)].float() / plan.world
        return "skipped" not in self.struck

    def update(self) -> None:
        if self.plan.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.optimizer:
            group = self.optimizer.param_groups[0]
            group["eps"] = 0.0 if "step" in self.struck else 1e-8
            group["lr"] = INF if self.struck & {"sgd_step", "between"} else 1e-2
            self.optimizer.step()  # fault: step
            return
        with torch.no_grad():
            for weight in self.model.parameters():
                size = weight.grad.abs()
                if weight is not self.model.shared or "hand" not in self.struck:
                    size += 0.1
                weight.addcdiv_(weight.grad, size, value=-0.01)  # fault: hand


def train(plan: Plan, dump: str) -> None:
    """Run one rank of a plan; record it."""
    torch.manual_seed(plan.seed)
    torch.use_deterministic_algorithms(plan.fill)
    run = Run(plan)
    debugger = PrecisionDebugger(dump_path=dump, task="statistics", level="L1")
    for step in range(plan.steps):
        batch, target = run.begin(step)
        debugger.start(run.called if plan.named else None)
        run.model.zero_grad()
        run.forward_backward(batch, target)
        go_on = run.reduce_gradients()
        if not plan.update_seen:
            debugger.stop()
        if go_on:
            run.update()
        debugger.stop()
        debugger.step()
