"""Writes small dumps of our own for tests: each rank's calls in the words of the field.

run = Run(tmp_path / "dump", ranks=2)
(y,) = run.rank(0).call("Torch.exp.0.forward", [Value(max=99.0)], [Value(inf=1)])
run.rank(0).comm("Distributed.all_reduce.0.forward", [y], [Value(inf=1)])
run.write()
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from collectors.parts import RunInfo
from collectors.writer import ShardWriter
from pipeline.readers.msprobe.names import parse_name

_ids = itertools.count(1)


@dataclass(frozen=True)
class Value:
    """What a tensor's statistics say of it and, once a call made it, which one."""

    max: float | None = 1.0
    min: float | None = 0.0
    norm: float | None = None
    mean: float | None = None
    zeros: int | None = None
    checksum: str | None = None
    layout: str | None = None
    nan: int = 0
    inf: int = 0
    neginf: int = 0
    shape: tuple[int, ...] = (8,)
    dtype: str = "float32"
    role: str = "value"
    direction: str | None = None
    slot: str | None = None
    requires_grad: bool = False
    saturated: bool = False
    id: int = field(default_factory=lambda: next(_ids))
    made_by: tuple[int, str] | None = None

    def but(self, **changes: Any) -> Value:
        """Return the same value seen otherwise: another slot, role, or content."""
        return replace(self, **changes)


def bad(**content: int) -> Value:
    """Return a value with no finite element: bad(nan=8)."""
    return Value(max=None, min=None, **content)


def args(**values: Any) -> str:
    """Return arguments as a collector writes them: args(input_1=-math.inf)."""
    items = {
        slot.replace("_", ".", 1): {
            "type": type(value).__name__,
            "value": value if not isinstance(value, float) or math.isfinite(value) else str(value),
        }
        for slot, value in values.items()
    }
    return json.dumps(items)


class Run:
    """A dump under way.

    Args:
        dump: where it is written.
        ranks: world size.
        lineage: whether it is on record which call made which tensor.
    """

    def __init__(self, dump: Path, *, ranks: int = 1, lineage: bool = True) -> None:
        self.dump, self.ranks, self.lineage = dump, ranks, lineage
        self.shards: dict[tuple[int, int], Shard] = {}
        self.seqs = [itertools.count() for _ in range(ranks)]

    def rank(self, rank: int, step: int = 0) -> Shard:
        """Return one rank's calls of one step."""
        return self.shards.setdefault((step, rank), Shard(self, rank))

    def write(self, *, without: Sequence[int] = ()) -> Path:
        """Write all shards but those of the ranks in `without`; return the dump."""
        info = RunInfo(run_id="test", framework="pytorch", world_size=self.ranks)
        for (step, rank), shard in self.shards.items():
            if rank not in without:
                writer = ShardWriter(self.dump, step=step, rank=rank, run=info)
                for call, tensors in shard.calls:
                    writer.add(call, tensors)
                writer.close(complete=shard.complete)
        return self.dump


class Shard:
    """One rank's calls of one step, in order."""

    def __init__(self, run: Run, rank: int) -> None:
        self.run, self.rank = run, rank
        self.calls: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self.complete = True
        self._numbers: dict[tuple[int, ...], itertools.count[int]] = {}

    def call(
        self,
        name: str,
        reads: Sequence[Value] = (),
        makes: Sequence[Value] = (),
        **columns: Any,
    ) -> list[Value]:
        """Record a call; return what it made."""
        seq = next(self.run.seqs[self.rank])
        made = []
        for place, value in enumerate(makes):
            slot = value.slot or f"output.{place}"
            made.append(value.but(slot=slot, made_by=(seq, slot), id=next(_ids)))
        tensors = [
            self._tensor(seq, value.but(slot=value.slot or f"input.{place}"), "input")
            for place, value in enumerate(reads)
        ]
        tensors += [self._tensor(seq, value, "output") for value in made]
        self.calls.append(({"seq": seq, "name": name} | _parts(name) | columns, tensors))
        return [value.but(slot=None) for value in made]

    def comm(
        self,
        name: str,
        reads: Sequence[Value] = (),
        makes: Sequence[Value] = (),
        *,
        group: Sequence[int] | None = None,
        **columns: Any,
    ) -> list[Value]:
        """Record a communication call of a group of ranks; None is all of them."""
        ranks = tuple(range(self.run.ranks) if group is None else group)
        if "peer" not in columns:
            columns["group_seq"] = next(self._numbers.setdefault(ranks, itertools.count()))
        return self.call(
            name, reads, makes, group_id=f"ranks {ranks}", group_ranks=list(ranks), **columns
        )

    def _tensor(self, seq: int, value: Value, direction: str) -> dict[str, Any]:
        row = {
            "seq": seq,
            "slot": value.slot,
            "direction": value.direction or direction,
            "role": value.role,
            "dtype": value.dtype,
            "shape": list(value.shape),
            "numel": math.prod(value.shape),
            "max": value.max,
            "min": value.min,
            "norm": value.norm,
            "mean": value.mean,
            "zero_count": value.zeros,
            "checksum": value.checksum,
            "layout": value.layout,
            "has_nan": value.nan > 0,
            "has_posinf": value.inf > 0,
            "has_neginf": value.neginf > 0,
            "nan_count": value.nan,
            "posinf_count": value.inf,
            "neginf_count": value.neginf,
            "saturated": value.saturated,
            "requires_grad": value.requires_grad,
        }
        if self.run.lineage:
            row["value_id"] = value.id
            if value.made_by and direction == "input":
                row["producer_seq"], row["producer_slot"] = value.made_by
        return row


def _parts(name: str) -> dict[str, Any]:
    parsed = parse_name(name)
    return {
        "api": parsed.api,
        "call_index": parsed.call_index,
        "phase": parsed.phase,
        "kind": parsed.kind,
        "module": parsed.module,
        "state": "ok",
    }
