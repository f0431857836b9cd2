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
from .names import parse_name
from .tensors import Tensors
from .values import Leaf, leaves

PARAMETER_GRADIENTS = ".parameters_grad"
SECTIONS = {
    "input_args": ("input", "input"),
    "input_kwargs": ("input", "input"),
    "input": ("input", "input"),
    "output": ("output", "output"),
    "parameters": ("parameters", "parameter"),
}
"""Section of a record -> first part of the slot, direction."""


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
    calls = reading.calls.table(CallStacks(folder), reading.tree)
    return MsprobeShard(calls, reading.tensors.table(), header, damage, unfinished)


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
        self.calls = Calls()
        self.tensors = Tensors()
        self.tree = CallTree(folder)
        self.running: Counter[str] = Counter()

    def take(self, records: dict[str, Any]) -> None:
        """Add the records of one file, in its order.

        Gradients of parameters come last: some versions put their place in the file before
        anything was computed, and what they hold is what all backward calls added up.
        """
        names = sorted(records, key=lambda name: PARAMETER_GRADIENTS in name)
        seqs = {name: seq for seq, name in enumerate(names, len(self.calls.names))}
        parents = map(self.tree.parent, names)
        self.calls.parent_seqs += [seqs.get(parent) if parent else None for parent in parents]
        self.calls.names += names
        for name, seq in seqs.items():
            self._record(seq, name, records[name])

    def _record(self, seq: int, name: str, record: Any) -> None:
        parsed = parse_name(name)
        body = record if isinstance(record, dict) else {}
        found, directions = self.tensors.found, self.tensors.directions
        first = len(found)
        inputs: list[Leaf] = []  # the non-tensor arguments
        others: list[Leaf] = []
        for direction, slot, value in _sections(name, record):
            leaves(value, slot, found, inputs if direction == "input" else others)
            directions += [direction] * (len(found) - len(directions))
        roles = ["value"] * (len(found) - first)
        if parsed.kind == "comm":
            comm = Communication(name.partition(".")[0], parsed.api, body, self.rank)
            batch = operations((*inputs, *others))
            roles = [comm.role(slot, batch.get(slot)) for slot, _ in found[first:]]
            inputs = [(slot, with_world(item) if slot in batch else item) for slot, item in inputs]
            self.calls.communication[seq] = comm.columns(self.running)
        self.tensors.roles += roles
        self.tensors.seqs += [seq] * len(roles)
        if body.get("is_nan") is not None:
            outputs = [row for row in range(first, len(found)) if directions[row] == "output"]
            self.tensors.overflow.update(dict.fromkeys(outputs, bool(body["is_nan"])))
        self.calls.parsed.append(parsed)
        self.calls.recompute.append(body.get("is_recompute"))
        self.calls.add_arguments(dict(inputs))


def _sections(name: str, record: Any) -> list[tuple[str, str, Any]]:
    """Return direction, first part of the slot, and content of everything in a record."""
    if name.endswith(".debug"):
        return [("output", "output", record)]
    if not isinstance(record, dict):
        return []
    if PARAMETER_GRADIENTS in name:
        return [
            # one gradient each, in a list of one
            ("gradient", f"gradient.{of}", grad[0] if isinstance(grad, list) and grad else grad)
            for of, grad in record.items()
        ]
    return [
        (direction, side, record[section])
        for section, (side, direction) in SECTIONS.items()
        if section in record
    ]
