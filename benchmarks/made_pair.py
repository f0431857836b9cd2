"""Makes two dumps in msprobe's form that part at one call: what follows from it differs as well."""

from __future__ import annotations

import json
import random
from pathlib import Path

from benchmarks.made_dump import BLOCK, COMM_EVERY, SHAPE, WEIGHT, stacks, tensor

GAIN = 1.01
"""What the planted call's output is multiplied with."""


def make_pair(folder: Path, *, ranks: int, calls: int, seed: int) -> tuple[Path, Path]:
    """Write bench/ and target/ below `folder`; return both."""
    for rank in range(ranks):
        for side, gain in (("bench", 1.0), ("target", GAIN)):
            where = folder / side / "step0" / f"rank{rank}"
            where.mkdir(parents=True)
            records = _records(ranks, calls, random.Random(f"{seed}/{rank}"), gain)
            head = {"task": "statistics", "level": "L1", "framework": "pytorch"}
            head |= {"dump_data_dir": None}
            (where / "dump.json").write_text(json.dumps(head | {"data": records}, indent=1))
            (where / "stack.json").write_text(json.dumps(stacks(list(records)), indent=1))
            (where / "construct.json").write_text("{}")
    return folder / "bench", folder / "target"


def planted_call(calls: int) -> str:
    """Return the name of the call at which the two part."""
    return list(_records(1, calls, random.Random(0), 1.0))[planted(calls)]


def planted(calls: int) -> int:
    """Return the number of that call; never a communication, which all ranks take part in."""
    return calls // 2 + (calls // 2 % COMM_EVERY == COMM_EVERY - 1)


def _records(ranks: int, calls: int, rng: random.Random, gain: float) -> dict[str, dict]:
    group = {"type": "torch.ProcessGroup", "group_ranks": list(range(ranks)), "group_id": "made"}
    counts: dict[str, int] = {}
    records = {}
    value = tensor(rng, SHAPE)
    for number in range(calls):
        communicates = number % COMM_EVERY == COMM_EVERY - 1
        api = "Distributed.all_reduce" if communicates else BLOCK[number % COMM_EVERY]
        name = f"{api}.{counts.setdefault(api, 0)}.forward"
        counts[api] += 1
        made = tensor(rng, SHAPE)
        if number >= planted(calls):
            made |= {key: made[key] * gain for key in ("Max", "Min", "Mean", "Norm")}
        if communicates:
            records[name] = {
                "input_args": [value], "input_kwargs": {"group": group}, "output": [made, group],
            }  # fmt: skip
        else:
            args = [value, tensor(rng, WEIGHT), {"type": "float", "value": 1e-05}]
            records[name] = {"input_args": args, "input_kwargs": {}, "output": [made]}
        value = made
    return records
