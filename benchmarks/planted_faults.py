"""Precision and recall of the origins that crossrank finds in runs with random planted faults.

    python benchmarks/planted_faults.py --runs 200 --seed 0
    python benchmarks/planted_faults.py --only 17 --keep /tmp/dumps

Each run is a small PyTorch training of 2 to 4 ranks (processes, gloo) of a random topology, with
random layers, in which something random goes wrong at a known line, or nothing does, though
infinities pass by. An origin counts as found if step, rank, file:line and kind are those planted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch
import torch._inductor  # forks find it loaded
import torch.distributed as dist
from faulty_operations import BACKWARD, BENIGN, FORWARD, GAPS, NOISE, UNWRITTEN
from faulty_training import READERS, Fault, Plan, train

from pipeline.analysis import analyze_dump, run_store
from pipeline.engine_local import LocalEngine
from pipeline.settings import limits
from pipeline.shards import open_dump

HERE = Path(__file__).resolve().parent
TOPOLOGIES = ("dp", "tp", "pp", "tp_dp", "ep", "ring", "gather", "root", "ddp")
PHASES = {"forward": 30, "backward": 18, "sum": 10, "optimizer": 8, "between": 3, "data": 8,
          "weight": 6, "gap": 6, "unwritten": 6, "pair": 10, "none": 17}  # fmt: skip
WANTED = 0.98
PATIENCE = 60.0

Origin = tuple[int, int, str, str]
"""Step, rank, file:line, kind."""


def plan_of(seed: int) -> Plan:
    """Return the run of a seed."""
    rng = random.Random(seed)
    topology = rng.choice(TOPOLOGIES)
    world = 4 if topology == "tp_dp" else rng.choice((2, 2, 3, 4))
    layers, steps = rng.randint(1, 3), rng.randint(2, 3)
    plan = Plan(
        seed=seed, topology=topology, world=world, steps=steps,
        batch=world * rng.randint(2, 3), width=rng.choice((6, 8, 10, 12)),
        risk=tuple(rng.choice([*FORWARD, *BACKWARD]) for _ in range(layers)),
        noise=tuple((_noise(rng, BENIGN), _noise(rng, {})) for _ in range(layers)),
        faults=(),
        sync=rng.choice(("all_reduce", "async", "scatter", "reduce", "future", "halves")),
        optimizer=rng.choice(("adam", "sgd", "hand")),
        wrap=rng.choice(("", "", "", "checkpoint", "autocast")),
        reader=rng.choice([*READERS]), fill=rng.random() < 0.3, clip=rng.random() < 0.3,
        named=rng.random() < 0.7, update_seen=True,
        style=rng.choice(("plain", "functional", "chunks")), micro=rng.choice((1, 1, 2)),
    )  # fmt: skip
    phase = rng.choices([*PHASES], weights=[*PHASES.values()])[0]
    plan = _planted(plan, phase, rng)
    halves = any("half" in name for name in plan.risk)
    return replace(plan, wrap="") if halves and plan.wrap == "autocast" else plan


def _noise(rng: random.Random, more: Iterable[str]) -> tuple[str, ...]:
    return tuple(rng.choice([*NOISE, *more]) for _ in range(rng.randint(0, 2)))


def _planted(plan: Plan, phase: str, rng: random.Random) -> Plan:
    fault = Fault("", rng.randrange(plan.steps), rng.randrange(plan.world),
                  rng.randrange(len(plan.risk)))  # fmt: skip
    tables = {"forward": FORWARD, "backward": BACKWARD, "gap": GAPS, "unwritten": UNWRITTEN}
    if phase in tables:
        fault = replace(fault, name=rng.choice([*tables[phase]]))
        risk = [*plan.risk]
        risk[fault.layer] = fault.name
        plan = replace(plan, risk=tuple(risk), fill=plan.fill or phase == "unwritten")
        return replace(plan, faults=(fault,))
    if phase == "pair":
        return _pair(plan, fault, rng)
    if phase in ("sum", "none"):
        skipped = phase == "none" and rng.random() < 0.2
        name = "sum" if phase == "sum" else "skipped"
        steps = 1 if skipped else plan.steps
        faults = tuple(replace(fault, name=name, rank=rank, step=fault.step % steps)
                       for rank in range(plan.world))  # fmt: skip
        more = BENIGN if phase == "none" else {}
        noise = tuple(((*before, *rng.sample([*more], min(2, len(more)))), after)
                      for before, after in plan.noise)  # fmt: skip
        return replace(plan, noise=noise, faults=faults if phase == "sum" or skipped else ())
    return _outside(plan, phase, fault, rng)


def _pair(plan: Plan, fault: Fault, rng: random.Random) -> Plan:
    """Plant two faults in one layer of two ranks."""
    plan = replace(plan, topology=rng.choice(("dp", "tp", "ep", "ring", "gather")))
    risk = [*plan.risk]
    risk[fault.layer] = rng.choice([*FORWARD])
    ranks = rng.sample(range(plan.world), 2)
    faults = tuple(replace(fault, name=risk[fault.layer], rank=rank) for rank in ranks)
    return replace(plan, risk=tuple(risk), faults=faults)


def _outside(plan: Plan, phase: str, fault: Fault, rng: random.Random) -> Plan:
    if phase == "optimizer":
        name = {"adam": "step", "sgd": "sgd_step", "hand": "hand"}[plan.optimizer]
        return replace(plan, faults=(replace(fault, name=name),))
    if plan.topology == "root" and phase != "data":
        fault = replace(fault, rank=0)
    if phase == "between":
        fault = replace(fault, name="between", step=fault.step % (plan.steps - 1))
        plan = replace(plan, optimizer="sgd", update_seen=False)
    elif phase == "weight":
        fault = replace(fault, name=rng.choice(("linear", "norm", "shared")), step=0)
    else:
        name = rng.choice(("batch", "target"))
        if plan.topology == "pp":
            fault = replace(fault, rank=0 if name == "batch" else plan.world - 1)
        elif plan.topology == "root" and name == "batch":
            fault = replace(fault, rank=0)
        fault = replace(fault, name=name)
    return replace(plan, faults=(fault,))


def lines() -> dict[str, str]:
    """Return file:line of every place where a fault is first seen, by its name."""
    found = {}
    for file in ("faulty_operations.py", "faulty_training.py"):
        for number, text in enumerate((HERE / file).read_text().splitlines(), 1):
            _, marked, name = text.partition("  # fault: ")
            if text.startswith('    "') and '": lambda ' in text:
                found.setdefault(text.split('"')[1], f"{file}:{number}")
            if marked:
                found[name] = f"{file}:{number}"
    return found


def wanted(plan: Plan, where: dict[str, str]) -> list[Origin]:
    """Return the origins that a plan has."""
    found = []
    for fault in plan.faults:
        name, step, rank = fault.name, fault.step, fault.rank
        kind = "compute"
        if name == "skipped" or (name == "sum" and rank):
            continue
        if name == "sum":
            name, kind = plan.sync, "communication"
            padded = plan.width + 2 + -(plan.width + 2) % plan.world
            rank = (plan.width - 1) * plan.world // padded if name == "scatter" else 0
        elif name in ("step", "sgd_step", "hand"):
            name, kind = "hand" if name == "hand" else "step", "optimizer"
        elif name in GAPS:
            kind = "gap"
        elif name in UNWRITTEN:
            kind = "uninitialized"
        elif name in ("batch", "target"):
            kind = "input"
            if name == "batch":
                name = "batch_root" if plan.topology == "root" else plan.reader
        elif name in ("linear", "norm", "shared", "between"):
            kind = "optimizer" if name == "between" else "parameter"
            step += name == "between"
            name = "norm" if name == "between" else name
            name = "weights_root" if plan.topology == "root" else name
        found.append((step, rank, where[name], kind))
    return sorted(found)


@dataclass
class Outcome:
    """What came of one run; `trouble` is what should not be there besides wrong origins."""

    plan: Plan
    wanted: list[Origin]
    found: list[Origin] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    repeated: int = 0

    @property
    def failed(self) -> bool:
        return self.wanted != self.found or bool(self.trouble)


def run(plan: Plan, dump: Path) -> list[str]:
    """Run every rank in a fork of this process; return what went wrong with them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = {}
    for rank in range(plan.world):
        pid = os.fork()
        if not pid:
            _rank(plan, dump, rank, port)
        ranks[pid] = rank
    return _ended(ranks) + [
        f"rank {path.stem}: {path.read_text()}" for path in sorted(dump.parent.glob("*.txt"))
    ]


def _rank(plan: Plan, dump: Path, rank: int, port: int) -> None:
    """Be one rank; never returns."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(plan.world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    said = ""
    try:
        with warnings.catch_warnings(record=True) as caught:
            dist.init_process_group("gloo")
            train(plan, str(dump))
        said = "\n".join(str(w.message) for w in caught if "crossrank" in str(w.message))
    except BaseException:
        said = traceback.format_exc()
    if said:
        (dump.parent / f"{rank}.txt").write_text(said)
    os._exit(bool(said))


def _ended(ranks: dict[int, int]) -> list[str]:
    """Wait for all ranks; end those that take too long."""
    until, trouble = time.monotonic() + PATIENCE, []
    while ranks and time.monotonic() < until:
        for pid in [*ranks]:
            if os.waitpid(pid, os.WNOHANG)[0]:
                del ranks[pid]
        time.sleep(0.002)
    for pid, rank in ranks.items():
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        trouble.append(f"rank {rank} did not end")
    return trouble


def judged(seed: int, where: dict[str, str], keep: Path | None) -> Outcome:
    """Run a seed and compare what is found with what was planted."""
    plan = plan_of(seed)
    outcome = Outcome(plan, wanted(plan, where))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if keep:
            folder = keep / str(seed)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        outcome.trouble = run(plan, folder / "dump")
        if not (folder / "dump").is_dir():
            return outcome
        dump, share = open_dump(folder / "dump"), limits(1)
        with run_store(dump, share, nan_only=False) as store:
            result = analyze_dump(dump, store, LocalEngine(1), share)
    found = [_origin(origin) for origin in result["origins"]]
    outcome.found = sorted(set(found))
    outcome.repeated = len(found) - len(outcome.found)
    outcome.trouble += [f"{w['code']}: {w['text']}" for w in result["warnings"]]
    return outcome


def _origin(origin: dict[str, Any]) -> Origin:
    place = (origin["source"] or "").partition(" in ")[0].rpartition("/")[2]
    return origin["step"], origin["rank"], place, origin["kind"]


def report(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return precision and recall over all runs, and the runs that failed."""
    wanted_all = sum(len(o.wanted) for o in outcomes)
    found_all = sum(len(o.found) for o in outcomes)
    right = sum(len({*o.wanted} & {*o.found}) for o in outcomes)
    return {
        "runs": len(outcomes),
        "clean": sum(not o.wanted for o in outcomes),
        "planted": wanted_all,
        "precision": right / found_all if found_all else 1.0,
        "recall": right / wanted_all if wanted_all else 1.0,
        "repeated": sum(o.repeated for o in outcomes),
        "failed": [
            {"seed": o.plan.seed, "wanted": o.wanted, "found": o.found, "trouble": o.trouble,
             "plan": asdict(o.plan)}
            for o in outcomes
            if o.failed
        ],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first run; each takes the next")
    parser.add_argument("--only", type=int, help="repeat the run of one seed")
    parser.add_argument("--keep", type=Path, help="keep the dumps in this folder")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(args.seed, args.seed + args.runs) if args.only is None else [args.only]
    where, outcomes = lines(), []
    for seed in seeds:
        outcomes.append(judged(seed, where, args.keep))
        if outcomes[-1].failed:
            print(told(outcomes[-1]), file=sys.stderr, flush=True)
    found = report(outcomes)
    print(json.dumps(found, indent=1) if args.json else table(found))
    return 0 if min(found["precision"], found["recall"]) >= WANTED else 1


def told(outcome: Outcome) -> str:
    """Return a failing run in one line: its seed, what was planted, what was found instead."""
    plan = outcome.plan
    faults = ", ".join(str(fault) for fault in plan.faults)
    trouble = [text[-300:] for text in outcome.trouble][:2]
    place = f"{plan.seed} {plan.topology} of {plan.world}: {faults}"
    return f"{place}; wanted {outcome.wanted}, found {outcome.found} {trouble or ''}"


def table(found: dict[str, Any]) -> str:
    """Return the numbers of a report, a line each."""
    numbers = {**found, "failed": len(found["failed"])}
    rows = (
        f"{key:10} {value:.3f}" if isinstance(value, float) else f"{key:10} {value}"
        for key, value in numbers.items()
    )
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
