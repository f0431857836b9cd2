"""Training with a planted fault: what crossrank finds, to be tried out on a laptop.

    torchrun --nproc_per_node 4 examples/train.py --parallel tp --fault forward --dump /tmp/dump
    crossrank analyze /tmp/dump

A transformer of two small layers learns made-up tokens, on CPUs, in a few seconds. In step 1 the
last rank goes wrong in the way that --fault says; the line where it does so ends in `# fault: ...`.
Three differ: `weight` is bad from the start, `comm` takes every rank, as each brings a finite value
and only their sum is not, and `mask` is no fault: attention is masked with -inf, on every rank in
every step.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from parallel import ColumnParallelLinear, ExpertParallel, Place, RowParallelLinear, fully_shard
from torch import Tensor, nn

LAYERS, WIDTH, HEADS, VOCABULARY, BATCH, SEQUENCE = 2, 16, 2, 32, 4, 8
PADDED = VOCABULARY + 8  # outputs of the head; the last 8 are no token's, so their gradient is 0

PARALLEL = ("tp", "dp", "pp", "fsdp2", "ep")
KINDS = {  # fault -> what crossrank calls its kind
    "forward": "compute",
    "backward": "compute",
    "comm": "communication",
    "weight": "parameter",
    "batch": "input",
    "optimizer": "optimizer",
}
FAULTY_STEP = dict.fromkeys(KINDS, 1) | {"weight": 0}  # a bad weight comes with the checkpoint


class Planted(TypedDict):
    """Where a fault is first seen."""

    step: int
    rank: int
    line: int
    kind: str


def planted(fault: str, world: int) -> Planted | None:
    """Return where a fault is first seen in a run of so many ranks; None if nothing is wrong.

    `rank` is the only rank that has it at first, for `comm` the first of those that get it at once.
    `line` is the line of this file that makes the bad value or, if it came from outside of the
    step (`weight`, `batch`), the line that first reads it.
    """
    if fault not in KINDS:
        return None
    lines = Path(__file__).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.endswith(f"  # fault: {fault}"))
    rank = 0 if fault == "comm" else world - 1
    return {"step": FAULTY_STEP[fault], "rank": rank, "line": line, "kind": KINDS[fault]}


@dataclass
class Plant:
    """The fault of this run; asked wherever one could strike."""

    fault: str
    step: int = 0

    def strikes(self, fault: str) -> bool:
        """Whether this fault happens on this rank in this step."""
        here = fault == "comm" or dist.get_rank() == dist.get_world_size() - 1
        return fault == self.fault and self.step == FAULTY_STEP[fault] and here


class Attention(nn.Module):
    """Causal attention with a gate on its output, heads split over the tensor-parallel group."""

    def __init__(self, place: Place, plant: Plant) -> None:
        super().__init__()
        self.project = ColumnParallelLinear(WIDTH, 4 * WIDTH, place)
        self.out = RowParallelLinear(WIDTH, WIDTH, place)
        self.plant = plant

    def forward(self, x: Tensor, position_bias: Tensor) -> Tensor:
        """Attend: [batch, sequence, width] to the same."""
        heads = self.project(x).unflatten(-1, (-1, 4, WIDTH // HEADS)).transpose(1, 2)
        query, key, value, gate = heads.unbind(dim=3)
        scores = query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5 + position_bias
        future = torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).triu(diagonal=1)
        hidden = float("-inf") if self.plant.fault == "mask" else -1e4
        weights = torch.softmax(scores.masked_fill(future, hidden), dim=-1)
        if self.plant.strikes("backward"):
            gate = gate - 200  # sigmoid gives exactly 0, where the root is finite and its slope not
        opening = torch.sigmoid(gate)
        strength = torch.sqrt(opening)  # fault: backward
        return self.out((weights @ value * strength).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Two linear layers, split over the tensor-parallel group, with a logarithm between them."""

    def __init__(self, place: Place, plant: Plant) -> None:
        super().__init__()
        self.up = ColumnParallelLinear(WIDTH, 2 * WIDTH, place)
        self.down = RowParallelLinear(2 * WIDTH, WIDTH, place)
        self.plant = plant

    def forward(self, x: Tensor) -> Tensor:
        """Return [..., width] for [..., width]."""
        energy = self.up(x)
        if self.plant.strikes("forward"):
            energy = energy - 200  # softplus gives exactly 0
        energy = F.softplus(energy)
        energy = torch.log(energy)  # fault: forward
        return self.down(energy)


class Block(nn.Module):
    """One layer of the transformer."""

    def __init__(self, place: Place, plant: Plant, experts: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.attention = Attention(place, plant)
        networks = [FeedForward(place, plant) for _ in range(experts or 1)]
        network = networks[place.replica if experts else 0]
        self.network = ExpertParallel(WIDTH, network, experts) if experts else network

    def forward(self, x: Tensor, position_bias: Tensor) -> Tensor:
        """Return [batch, sequence, width] for the same."""
        x = x + self.attention(self.norms[0](x), position_bias)
        return x + self.network(self.norms[1](x))


class Model(nn.Module):
    """The part of the transformer that one pipeline stage has.

    All stages make all parts and keep their own, so that every split starts from the same numbers.
    """

    def __init__(self, place: Place, plant: Plant, experts: int) -> None:
        super().__init__()
        sound = Plant(plant.fault)  # its step never comes: faults are the last layer's
        plants = [sound] * (LAYERS - 1) + [plant]
        blocks = [Block(place, layer_plant, experts) for layer_plant in plants]
        embedding, head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, PADDED, bias=False)
        own = LAYERS // place.pp
        self.embedding = embedding if place.first else nn.Identity()
        self.position_bias = nn.Parameter(torch.zeros(SEQUENCE, SEQUENCE))  # of every layer alike
        self.blocks = nn.ModuleList(blocks[place.stage * own : (place.stage + 1) * own])
        self.norm = nn.LayerNorm(WIDTH) if place.last else nn.Identity()
        self.head = head if place.last else nn.Identity()

    def forward(self, tokens: Tensor, received: Tensor | None) -> Tensor:
        """Return what the next stage reads, and the last stage's logits."""
        x = self.embedding(tokens) if received is None else received
        for block in self.blocks:
            x = block(x, self.position_bias)
        x = self.norm(x)
        return self.head(x)  # fault: weight


@dataclass
class Batch:
    """What the data loader hands out: [batch, sequence], and the last two flat."""

    tokens: Tensor
    targets: Tensor
    weights: Tensor


def load(step: int, place: Place, plant: Plant) -> Batch:
    """Return a replica's batch of a step."""
    generator = torch.Generator().manual_seed(1000 * step + place.replica)
    text = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1), generator=generator)
    batch = Batch(text[:, :-1], text[:, 1:].flatten(), torch.ones(BATCH * SEQUENCE))
    if plant.strikes("batch"):
        batch.weights[0] = float("nan")
    return batch


def loss_of(logits: Tensor, batch: Batch) -> Tensor:
    """Return the weighted mean of the cross entropy."""
    used = logits[..., :VOCABULARY].flatten(0, 1)
    losses = F.cross_entropy(used, batch.targets, reduction="none")
    losses = losses * batch.weights  # fault: batch
    return losses.mean()


def forward_backward(model: nn.Module, batch: Batch, place: Place) -> Tensor:
    """Run this rank's stage both ways; return the loss, 0 where another stage has it."""
    received = None
    if not place.first:
        received = torch.empty(BATCH, SEQUENCE, WIDTH)
        dist.recv(received, src=place.neighbour(-1))
        received.requires_grad_()
    output = model(batch.tokens, received)
    if place.last:
        loss = loss_of(output, batch)
        loss.backward()
    else:
        loss, gradient = torch.zeros(()), torch.empty_like(output)
        dist.send(output.detach(), dst=place.neighbour(1))
        dist.recv(gradient, src=place.neighbour(1))
        output.backward(gradient)
    if received is not None:
        dist.send(received.grad, dst=place.neighbour(-1))
    return loss.detach()


def reduce_gradients(model: nn.Module, place: Place, plant: Plant, sharded: bool) -> None:
    """Average gradients over replicas; FSDP has done so for all that it shards.

    All layers and heads share the position bias: all ranks sum its gradient, sent as float16.
    """
    for name, parameter in model.named_parameters():
        if sharded or name == "position_bias":
            continue
        if place.dp_group is not None and ".expert." not in name:
            dist.all_reduce(parameter.grad, group=place.dp_group)
        parameter.grad.div_(place.dp)
    total = model.position_bias.grad.half()
    if plant.strikes("comm"):
        total = total + 60000  # as if a loss scale were left in; float16 ends at 65504
    dist.all_reduce(total)  # fault: comm
    model.position_bias.grad = total.float() / place.dp


def collector(dump: str | None) -> Any:
    """Return the debugger that writes the dump; None without one."""
    if dump is None:
        return None
    try:
        from crossrank.collectors import PrecisionDebugger
    except ModuleNotFoundError:  # a checkout that is not installed
        sys.path.append(str(Path(__file__).resolve().parents[1]))
        from collectors import PrecisionDebugger
    return PrecisionDebugger(dump_path=dump, task="statistics", level="L1")


def train(args: argparse.Namespace, place: Place) -> list[Tensor]:
    """Train; return this rank's loss of each step."""
    torch.manual_seed(0)
    plant, sharded = Plant(args.fault), args.parallel == "fsdp2"
    model = Model(place, plant, experts=place.dp if args.parallel == "ep" else 0)
    if sharded:
        fully_shard([*model.blocks, model.head], model, whole={model.position_bias})
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    debugger, losses = collector(args.dump), []
    for plant.step in range(args.steps):
        batch = load(plant.step, place, plant)
        if plant.strikes("weight"):
            weight = model.head.weight.detach()
            (weight.to_local() if sharded else weight)[0, 0] = float("nan")
        if plant.strikes("optimizer"):
            optimizer.param_groups[0]["eps"] = 0.0  # 0 / 0 where the gradient was always 0
        if debugger:
            debugger.start(model)
        optimizer.zero_grad()
        losses.append(forward_backward(model, batch, place))
        reduce_gradients(model, place, plant, sharded)
        optimizer.step()  # fault: optimizer
        if debugger:
            debugger.stop()
            debugger.step()
    return losses


def main(arguments: Sequence[str] | None = None) -> None:
    """Train as the command line (or these arguments) says, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parallel", choices=PARALLEL, default="tp")
    parser.add_argument("--fault", choices=("none", *KINDS, "mask"), default="none")
    parser.add_argument("--dump", help="folder for the dump; without it nothing is recorded")
    parser.add_argument("--steps", type=int, default=2)
    for size in ("tp", "pp", "dp"):
        parser.add_argument(f"--{size}", type=int, default=0, help="0: as --parallel needs")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    place = Place.of(args.parallel, args.tp, args.pp, args.dp)
    if HEADS % place.tp or LAYERS % place.pp:
        parser.error(f"tp has to divide {HEADS} heads, and pp {LAYERS} layers")
    losses = torch.stack(train(args, place))
    dist.all_reduce(losses)  # every shard of the last stage brought the same
    if dist.get_rank() == 0:
        print("losses:", *(f"{loss:.4f}" for loss in (losses / (place.tp * place.dp)).tolist()))
        if where := planted(args.fault, dist.get_world_size()):
            line = "planted: step {step}, rank {rank}, examples/train.py:{line} kind {kind}"
            print(line.format(**where))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
