"""Reads one rank's folder of an msprobe dump into the tables of a shard."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from .calls import Calls
from .communication import Communication, operations, with_world
from .context import CallStacks, CallTree
from .folders import RECORDS
from .json_text import read_records
from .names import Name
from .tensors import Tensors
from .values import Leaf, leaves

PARAMETER_GRADIENTS = ".parameters_grad"
SECTIONS = (
    ("input_args", "input"),
    ("input_kwargs", "input"),
    ("input", "input"),
    ("output", "output"),
    ("parameters", "parameters"),
)
"""Section of a record, first part of its slots."""


@dataclass(frozen=True)
class MsprobeShard:
    """One rank's records of one step.

    Args:
        calls, tensors: tables with the columns of a shard.
        header: the head of dump.json: task, level, framework.
        damage: what cannot be read of it; empty when all can.
        unfinished: what says that the process ended early; empty when nothing does.
    """

    calls: pa.Table
    tensors: pa.Table
    header: dict[str, Any]
    damage: str
    unfinished: str


def read_shard(folder: Path, rank: int) -> MsprobeShard:
    """Read one rank folder; a damaged record gives what is whole in it."""
    with _no_garbage_collection():
        return _read(folder, rank)


def _read(folder: Path, rank: int) -> MsprobeShard:
    files = [read_records(folder / name) for name in RECORDS if (folder / name).exists()]
    reading = _Reading(folder, rank)
    for file in files:
        reading.take(file.records)
    header = files[0].header
    damage = "; ".join(file.damage for file in files if file.damage)
    unfinished = ""
    if not damage and not reading.calls.names and header.get("task") != "structure":
        unfinished = f"{RECORDS[0]} holds no record: the process ended before it wrote any"
    return MsprobeShard(reading.calls.table(), reading.tensors.table(), header, damage, unfinished)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Parsing makes millions of objects and no cycles: searching for cycles doubles its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Reading:
    """The rows of one rank while its records are read."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.rank = rank
        self.calls = Calls(CallStacks(folder), CallTree(folder))
        self.tensors = Tensors()
        self.running: Counter[str] = Counter()

    def take(self, records: dict[str, Any]) -> None:
        """Add the records of one file, in its order.

        Gradients of parameters come last: some versions put their place in the file before
        anything was computed, and what they hold is what all backward calls added up.
        """
        names = sorted(records, key=lambda name: PARAMETER_GRADIENTS in name)
        for name, parsed in zip(names, self.calls.add(names), strict=True):
            self._record(name, parsed, records[name])

    def _record(self, name: str, parsed: Name, record: Any) -> None:
        found = self.tensors.found
        first = len(found)
        inputs: list[Leaf] = []  # the non-tensor arguments
        others: list[Leaf] = []
        body = record if isinstance(record, dict) else {}
        if name.endswith(".debug"):
            leaves(record, "output", found, others)
        elif PARAMETER_GRADIENTS in name:
            for of, grad in body.items():  # one gradient each, in a list of one
                one = grad[0] if isinstance(grad, list) and grad else grad
                leaves(one, f"gradient.{of}", found, others)
        else:
            for section, slot in SECTIONS:
                if section in body:
                    leaves(body[section], slot, found, inputs if slot == "input" else others)
        if parsed.kind == "comm":
            comm = Communication(name.partition(".")[0], parsed.api, body, self.rank)
            inputs = self._communication(comm, first, inputs, others)
        if body.get("is_nan") is not None:
            outputs = [row for row in range(first, len(found)) if found[row][0][:6] == "output"]
            self.tensors.overflow.update(dict.fromkeys(outputs, bool(body["is_nan"])))
        self.tensors.counts.append(len(found) - first)
        self.calls.add_content(body.get("is_recompute"), inputs)

    def _communication(
        self, comm: Communication, first: int, inputs: list[Leaf], others: list[Leaf]
    ) -> list[Leaf]:
        """Add what the next call and its tensors have of communication; return its arguments."""
        batch = operations((*inputs, *others))
        for row, (slot, _) in enumerate(self.tensors.found[first:], first):
            self.tensors.roles[row] = comm.role(slot, batch.get(slot))
        self.calls.communication[len(self.calls.args)] = comm.columns(self.running)
        return [(slot, with_world(item) if slot in batch else item) for slot, item in inputs]
