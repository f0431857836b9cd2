"""Precision and recall of the origins that crossrank finds in runs with random planted faults.

    python benchmarks/planted_faults.py --runs 200 --seed 0 --keep /tmp/dumps

Each run is a small PyTorch training of 2 to 4 ranks (processes, gloo) in a random topology, of
random layers, in which something goes wrong at a known line, or nothing does, though infinities
pass by. An origin is right if step, rank, file:line and kind are those that were planted.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace as Plan
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import torch._inductor  # so that no fork has to load it
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from benchmarks import faulty_training as faulty
from collectors import PrecisionDebugger
from pipeline.analysis import analyze_dump, run_store
from pipeline.engine_local import LocalEngine
from pipeline.settings import limits
from pipeline.shards import open_dump

PHASES = {  # when something goes wrong -> how often, and the kind of its origin
    "forward": (30, "compute"), "backward": (18, "compute"), "pair": (8, "compute"),
    "sum": (10, "communication"), "optimizer": (8, "optimizer"), "between": (4, "optimizer"),
    "data": (8, "input"), "weight": (6, "parameter"), "gap": (6, "gap"),
    "unwritten": (6, "uninitialized"), "skipped": (4, ""), "none": (15, ""),
}  # fmt: skip
TABLES = {"forward": faulty.FORWARD, "pair": faulty.FORWARD, "backward": faulty.BACKWARD,
          "gap": faulty.GAPS, "unwritten": faulty.UNWRITTEN}  # fmt: skip
TOPOLOGIES = ("dp", "tp", "ep", "ring", "gather", "tp_dp", "pp", "root", "ddp")
OPTIMIZERS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD, "hand": torch.optim.SGD}
WANTED, PATIENCE_S = 0.98, 60
Origin = tuple[int, int, str, str]  # step, rank, file:line, kind


def plan_of(seed: int) -> Plan:
    """Return the run of a seed; `fault` strikes at `step`, in `layer` of `ranks`."""
    rng = random.Random(seed)
    phase = rng.choices([*PHASES], weights=[often for often, _ in PHASES.values()])[0]
    topology = rng.choice(TOPOLOGIES[:5] if phase == "pair" else TOPOLOGIES)
    world = 4 if topology == "tp_dp" else rng.choice((2, 2, 3, 4))
    steps, layers = rng.randint(2, 3), [faulty.operations(rng) for _ in range(rng.randint(1, 3))]
    layer = rng.randrange(len(layers))
    risk = next(place for place, name in enumerate(layers[layer]) if name in faulty.RISKS)
    layers[layer][risk] = rng.choice([*TABLES.get(phase, [layers[layer][risk]])])
    optimizer = "sgd" if phase == "between" else rng.choice([*OPTIMIZERS])
    faults = dict.fromkeys(TABLES, layers[layer][risk]) | {
        "weight": rng.choice(("linear", "norm", "shared")), "data": rng.choice(("batch", "target")),
        "optimizer": "hand" if optimizer == "hand" else "step",
    }  # fmt: skip
    plan = Plan(
        seed=seed, phase=phase, topology=topology, world=world, steps=steps, operations=layers,
        fault=faults.get(phase, phase), step=rng.randrange(steps), layer=layer,
        ranks=rng.sample(range(world), 2 if phase == "pair" else 1),
        batch=world * rng.randint(2, 3), width=rng.choice((6, 8, 10, 12)),
        sync=rng.choice(("all_reduce", "async", "scatter", "reduce")), optimizer=optimizer,
        wrap=rng.choice(("", "", "checkpoint", "" if "half" in str(layers) else "autocast")),
        reader=rng.choice([*faulty.READERS]), fill=phase == "unwritten" or rng.random() < 0.3,
        clip=rng.random() < 0.3, named=rng.random() < 0.7,
    )  # fmt: skip
    return _settle(plan)


def _settle(plan: Plan) -> Plan:
    """Move a fault to where it can strike."""
    if plan.phase in ("sum", "skipped"):
        plan.ranks = [*range(plan.world)]
    steps = {"between": plan.steps - 1, "skipped": plan.steps - 1, "weight": 1}
    plan.step %= steps.get(plan.phase, plan.steps)
    if plan.fault == "target" and plan.topology == "pp":
        plan.ranks = [plan.world - 1]
    copied = plan.phase in ("weight", "between") and plan.topology == "root"
    if copied or (plan.fault == "batch" and plan.topology in ("root", "pp")):
        plan.ranks = [0]
    return plan


def lines() -> dict[str, str]:
    """Return file:line of every place where a fault is first seen, by its name."""
    found = {}
    for file in (Path(__file__), Path(faulty.__file__)):
        for number, text in enumerate(file.read_text().splitlines(), 1):
            _, marked, name = text.partition("  # fault: ")
            if marked or '": lambda ' in text:
                found.setdefault(name or text.split('"')[1], f"{file.name}:{number}")
    return found


def wanted(plan: Plan) -> list[Origin]:
    """Return the origins that a run has."""
    kind, name, step, ranks = PHASES[plan.phase][1], plan.fault, plan.step, plan.ranks
    if plan.phase == "sum":
        name, ranks = plan.sync, [0]
    if plan.phase == "between":
        name, step = "norm", step + 1
    if plan.topology == "root" and plan.phase in ("weight", "between"):
        name = "weights_root"
    if name == "batch":
        name = "batch_root" if plan.topology == "root" else plan.reader
    return sorted((step, rank, lines()[name], kind) for rank in ranks if kind)


class Training:
    """The training of one rank."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.rank, self.fault = plan, dist.get_rank(), ""
        self.model = self.called = faulty.Model(plan)
        if plan.topology == "ddp":
            self.called = nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = OPTIMIZERS[plan.optimizer](self.model.parameters(), lr=1e-2)

    def begin(self, step: int) -> tuple[Tensor, Tensor]:
        """Return this rank's batch and target; plant what goes wrong outside of the record."""
        plan, alike = self.plan, self.plan.topology in ("tp", "tp_dp", "pp")
        self.fault = plan.fault if step == plan.step and self.rank in plan.ranks else ""
        generator = torch.Generator().manual_seed(step if alike else step * 8 + self.rank)
        batch, target = torch.randn(2, plan.batch, plan.width, generator=generator)
        layer = self.model.layers[plan.layer]
        layer.strikes = self.fault in layer.operations
        outside = {"batch": batch, "target": target, "linear": layer.linear.weight,
                   "norm": layer.norm.bias, "shared": self.model.shared}  # fmt: skip
        if self.fault in outside:
            outside[self.fault].detach().view(-1)[1] = faulty.NAN
        return batch, target

    def gradients(self, batch: Tensor, target: Tensor) -> None:
        """Run this rank's part both ways, and sum gradients over ranks."""
        plan, model = self.plan, self.model
        model.zero_grad()
        if plan.topology == "root":
            for weight in model.parameters():
                dist.broadcast(weight.data, 0)  # fault: weights_root
            dist.broadcast(batch, 0)  # fault: batch_root
        self.both_ways(batch, target)
        if plan.topology in ("dp", "ring", "root", "tp_dp"):
            for weight in model.layers.parameters():
                dist.all_reduce(weight.grad, group=model.transfers.data)
                weight.grad /= plan.world
        grad = model.shared.grad
        total = F.pad(grad, (0, -len(grad) % plan.world)).half()
        if self.fault in ("sum", "skipped"):
            total[0] += 4e4  # finite, unlike the sum over ranks
        faulty.sum_half(total, plan.sync)
        model.shared.grad = total[: len(grad)].float() / plan.world

    def both_ways(self, batch: Tensor, target: Tensor) -> None:
        rank, ends = self.rank, (0, self.plan.world - 1)
        first, last = (self.plan.topology != "pp" or rank == end for end in ends)
        if first:
            x = faulty.READERS[self.plan.reader](batch)
        else:
            x = torch.empty_like(batch)
            dist.recv(x, rank - 1)
            x.requires_grad_()
        y = self.called(x)
        if last:
            F.mse_loss(y, target).backward()  # fault: target
        else:
            dist.send(y.detach(), rank + 1)
            grad = torch.empty_like(y)
            dist.recv(grad, rank + 1)
            y.backward(grad)
        if not first:
            dist.send(x.grad, rank - 1)

    @torch.no_grad()
    def update(self) -> None:
        if self.plan.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        group, shared = self.optimizer.param_groups[0], self.model.shared
        wild = self.fault in ("step", "between") and self.plan.optimizer == "sgd"
        group["lr"], group["eps"] = faulty.INF if wild else 1e-2, 1e-8 * (self.fault != "step")
        if self.plan.optimizer != "hand":
            self.optimizer.step()  # fault: step
        for weight in self.model.parameters() if self.plan.optimizer == "hand" else ():
            eps = 0.0 if self.fault == "hand" and weight is shared else 0.1
            weight.addcdiv_(weight.grad, weight.grad.abs() + eps, value=-0.01)  # fault: hand


def train(plan: Plan, dump: str) -> None:
    """Train and record one rank."""
    torch.manual_seed(plan.seed)
    torch.use_deterministic_algorithms(plan.fill)
    training = Training(plan)
    debugger = PrecisionDebugger(dump_path=dump, task="statistics", level="L1")
    for step in range(plan.steps):
        data = training.begin(step)
        debugger.start(training.called if plan.named else None)
        training.gradients(*data)
        if plan.phase == "between":
            debugger.stop()
        if training.fault != "skipped":
            training.update()
        debugger.stop()
        debugger.step()


def run(plan: Plan, folder: Path) -> list[str]:
    """Run every rank in a fork of this process; return what is to be complained of."""
    pids = []
    for rank in range(plan.world):
        pids.append(os.fork())
        if not pids[-1]:
            _rank(plan, folder, rank)
    ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    ended = [f"rank {rank} ended with {end}" for rank, end in enumerate(ends) if end]
    return ended + [path.read_text() for path in sorted(folder.glob("*.txt"))]


def _rank(plan: Plan, folder: Path, rank: int) -> None:
    """Be one rank, and end."""
    signal.alarm(PATIENCE_S)
    place = {"init_method": f"file://{folder}/store", "rank": rank, "world_size": plan.world}
    with warnings.catch_warnings(record=True) as caught:
        try:
            dist.init_process_group("gloo", **place)
            train(plan, str(folder / "dump"))
            said = "\n".join(str(w.message) for w in caught if "crossrank" in str(w.message))
        except BaseException:
            said = traceback.format_exc()
    if said:
        (folder / f"{rank}.txt").write_text(said)
    os._exit(bool(said))


def judged(seed: int, folder: Path) -> dict[str, Any]:
    """Run a seed; return what was planted, what is found, and trouble besides."""
    plan, found = plan_of(seed), set[Origin]()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    trouble = run(plan, folder)
    if (folder / "dump").is_dir():
        dump, share = open_dump(folder / "dump"), limits(1)
        with run_store(dump, share, nan_only=False) as store:
            result = analyze_dump(dump, store, LocalEngine(1), share)
        trouble += [f"{warning['code']}: {warning['text']}" for warning in result["warnings"]]
        for origin in result["origins"]:
            place = (origin["source"] or "").partition(" in ")[0].rpartition("/")[2]
            found.add((origin["step"], origin["rank"], place, origin["kind"]))
    return vars(plan) | {"wanted": wanted(plan), "found": sorted(found), "trouble": trouble}


def report(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return precision and recall over all runs, and the runs that failed."""
    planted, found = (sum(len(o[key]) for o in outcomes) for key in ("wanted", "found"))
    right = sum(len({*o["wanted"]} & {*o["found"]}) for o in outcomes)
    failed = [o for o in outcomes if o["wanted"] != o["found"] or o["trouble"]]
    return {"runs": len(outcomes), "clean": sum(not o["wanted"] for o in outcomes),
            "planted": planted, "found": found, "precision": right / found if found else 1.0,
            "recall": right / planted if planted else 1.0, "failed": failed}  # fmt: skip


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield from (f"{key:>10}  {value:.4g}" for key, value in found.items() if key != "failed")
    for o in found["failed"]:
        yield f"seed {o['seed']}: {o['phase']}, {o['topology']} of {o['world']} ranks"
        yield from (f"  {w:8} {item}" for w in ("wanted", "found", "trouble") for item in o[w])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="each takes the next seed")
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--only", type=int, metavar="SEED", help="repeat one run")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the dumps there")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(args.seed, args.seed + args.runs) if args.only is None else [args.only]
    with tempfile.TemporaryDirectory() as folder:
        found = report([judged(seed, (args.keep or Path(folder)) / str(seed)) for seed in seeds])
    print(json.dumps(found, indent=1) if args.json else "\n".join(table(found)))
    return int(min(found["precision"], found["recall"]) < WANTED)


if __name__ == "__main__":
    sys.exit(main())
