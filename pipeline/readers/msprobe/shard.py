"""Reads one rank's folder of an msprobe dump into the tables of a shard."""

from __future__ import annotations

import gc
import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from collectors.schema import CALLS, TENSORS, Rows

from .communication import Communication, batch_role, world_of
from .context import CallStacks, CallTree
from .folders import RECORDS
from .json_text import read_records
from .names import parse_name
from .values import STATISTICS, Leaf, arguments, leaves, short_dtype, statistics

CALL_COLUMNS = (
    "seq name api call_index phase kind module parent_seq stack micro_step recompute args "
    "group_id group_ranks group_seq peer root tag reduce_op async"
).split()
TENSOR_COLUMNS = (
    *"seq slot direction role dtype shape numel".split(),
    *STATISTICS,
    *"checksum requires_grad layout value_path".split(),
)
PARAMETER_GRADIENTS = ".parameters_grad"
LAYOUT = ("device_mesh", "placements", "hsdp_shard_size")
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
    if not damage and not len(reading.calls) and header.get("task") != "structure":
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
        self.calls = Rows(CALLS, CALL_COLUMNS)
        self.tensors = Rows(TENSORS, TENSOR_COLUMNS)
        self.stacks = CallStacks(folder)
        self.tree = CallTree(folder)
        self.running: Counter[str] = Counter()

    def take(self, records: dict[str, Any]) -> None:
        """Add the records of one file, in its order.

        Gradients of parameters come last: some versions put their place in the file before
        anything was computed, and what they hold is what all backward calls added up.
        """
        names = sorted(records, key=lambda name: PARAMETER_GRADIENTS in name)
        seqs = {name: seq for seq, name in enumerate(names, len(self.calls))}
        for name in names:
            self._call(seqs, name, records[name])

    def _call(self, seqs: dict[str, int], name: str, record: Any) -> None:
        seq = seqs[name]
        parsed = parse_name(name)
        body = record if isinstance(record, dict) else {}
        comm = None
        if parsed.kind == "comm":
            comm = Communication(name.partition(".")[0], parsed.api, body, self.rank)
        given: dict[str, Any] = {}  # the non-tensor arguments
        batch: dict[str, str] = {}  # slot of a P2POp -> its operation
        for direction, found in _items(name, record):
            for slot, item, is_tensor in found:
                if is_tensor:
                    role = "value"
                    if slot in batch:
                        role = batch_role(direction == "input", batch[slot])
                    elif comm:
                        role = comm.role(slot)
                    self._tensor(seq, slot, direction, role, item, body.get("is_nan"))
                    continue
                if isinstance(item, dict) and "class_type" in item:
                    batch[slot] = str(item.get("op"))
                    item = item | {"group_ranks": world_of(str(item.get("group_id")))}
                if direction == "input":
                    given[slot] = item
        parent = self.tree.parent(name)
        row = {
            "seq": seq,
            "name": name,
            "api": parsed.api,
            "call_index": parsed.call_index,
            "phase": "optimizer" if self._in_optimizer(name) else parsed.phase,
            "kind": parsed.kind,
            "module": parsed.module or (parse_name(parent).module if parent else None),
            "parent_seq": seqs.get(parent) if parent else None,
            "stack": self.stacks.text(name),
            "micro_step": self.tree.micro_step(name),
            "recompute": body.get("is_recompute"),
            "args": arguments(given),
        }
        if comm:
            row |= comm.columns(self.running)
        self.calls.add(tuple(map(row.get, CALL_COLUMNS)))

    def _in_optimizer(self, name: str) -> bool:
        return self.stacks.in_optimizer(name) or self.tree.part_of_step(name) == "optimizer"

    def _tensor(
        self, seq: int, slot: str, direction: str, role: str, item: dict[str, Any], overflow: Any
    ) -> None:
        dtype = short_dtype(str(item["dtype"]))
        shape = item["shape"] or []
        found = statistics(item, dtype)
        if overflow is not None and direction == "output" and found[4] is None:
            found = (*found[:4], bool(overflow), *found[5:])
        layout = {key: item[key] for key in LAYOUT if key in item} if len(item) > 8 else None
        saved = item.get("data_name")
        self.tensors.add(
            (
                *(seq, slot, direction, role, dtype, shape, math.prod(shape)),
                *found,
                item.get("md5"),
                item.get("requires_grad"),
                json.dumps(layout) if layout else None,
                f"dump_tensor_data/{saved}" if saved else None,
            )
        )


def _items(name: str, record: Any) -> list[tuple[str, list[Leaf]]]:
    """Return everything in a record, by direction."""
    if name.endswith(".debug"):
        return [("output", _leaves(record, "output"))]
    if not isinstance(record, dict):
        return []
    if PARAMETER_GRADIENTS in name:
        return [
            # one gradient each, in a list of one
            (
                "gradient",
                _leaves(grad[0] if isinstance(grad, list) and grad else grad, f"gradient.{of}"),
            )
            for of, grad in record.items()
        ]
    return [
        (direction, _leaves(record[section], side))
        for section, (side, direction) in SECTIONS.items()
        if section in record
    ]


def _leaves(value: Any, slot: str) -> list[Leaf]:
    found: list[Leaf] = []
    leaves(value, slot, found)
    return found
