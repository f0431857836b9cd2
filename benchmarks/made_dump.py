"""Makes a dump in msprobe's form: transformer blocks, all_reduce every 16 calls, a planted NaN."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Iterable
from pathlib import Path

COMM_EVERY = 16
BLOCK = [
    "Functional.layer_norm", "Functional.linear", "Torch.matmul", "Functional.softmax",
    "Torch.matmul", "Functional.linear", "Tensor.__add__", "Functional.layer_norm",
    "Functional.linear", "Functional.gelu", "Functional.linear", "Tensor.__add__",
    "Tensor.__mul__", "Tensor.__add__", "Functional.dropout",
]  # fmt: skip
SHAPE, WEIGHT = [4, 128, 1024], [1024, 1024]
FRAMES = 12


def make_dump(
    folder: Path, *, ranks: int, calls: int, seed: int, only: Iterable[int] | None = None
) -> None:
    """Write step0/rank<R>/{dump,stack,construct}.json; the NaN is born on rank `ranks // 2`.

    Args:
        folder: new.
        ranks: world size.
        calls: of each rank.
        seed: of the values.
        only: the ranks to write; default: all.
    """
    for rank in range(ranks) if only is None else only:
        target = folder / "step0" / f"rank{rank}"
        target.mkdir(parents=True)
        records = _records(rank, ranks, calls, random.Random(f"{seed}/{rank}"))
        head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
        (target / "dump.json").write_text(json.dumps(head | {"data": records}, indent=1))
        (target / "stack.json").write_text(json.dumps(stacks(list(records)), indent=1))
        (target / "construct.json").write_text("{}")


def _records(rank: int, ranks: int, calls: int, rng: random.Random) -> dict[str, dict]:
    """Return the calls of one rank: each reads what the one before made."""
    born = calls // 2 + 3 if rank == ranks // 2 else calls
    spread = (calls // 2 // COMM_EVERY + 1) * COMM_EVERY - 1  # the first all_reduce after it
    group = {"type": "torch.ProcessGroup", "group_ranks": list(range(ranks)), "group_id": "made"}
    counts: dict[str, int] = {}
    records = {}
    value = tensor(rng, SHAPE)
    for number in range(calls):
        communicates = number % COMM_EVERY == COMM_EVERY - 1
        api = "Distributed.all_reduce" if communicates else BLOCK[number % COMM_EVERY]
        name = f"{api}.{counts.setdefault(api, 0)}.forward"
        counts[api] += 1
        bad = number >= min(born, spread)
        made = tensor(rng, SHAPE, bad=bad)
        if communicates:
            records[name] = {
                "input_args": [value], "input_kwargs": {"group": group}, "output": [made, group],
            }  # fmt: skip
        else:
            args = [value, tensor(rng, WEIGHT), {"type": "float", "value": 1e-05}]
            records[name] = {"input_args": args, "input_kwargs": {}, "output": [made]}
        value = made
    return records


def tensor(rng: random.Random, shape: list[int], *, bad: bool = False) -> dict:
    numbers = [math.nan] * 4 if bad else [_f32(rng.uniform(*span)) for span in ((1, 9), (-9, -1))]
    if not bad:
        numbers += [_f32(rng.uniform(-0.1, 0.1)), _f32(rng.uniform(100, 900))]
    keys = dict(zip(("Max", "Min", "Mean", "Norm"), numbers, strict=True))
    return {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": shape, **keys,
            "requires_grad": True}  # fmt: skip


def _f32(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def stacks(names: list[str]) -> dict[str, list]:
    """Return stack.json: 48 places in the source, 12 frames each."""
    return {
        str(place): [
            names[place::48],
            [
                f"File /train/model/layer{place}.py, line {line}, in forward, \n x = self.mlp(x)"
                for line in range(10, 10 + FRAMES)
            ],
        ]
        for place in range(48)
    }
