"""The calls of one rank's records, as a table."""

from __future__ import annotations

import marshal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.schema import CALLS, table

from .context import CallStacks, CallTree
from .names import Name, parse_name
from .values import arguments


class Calls:
    """The calls of one rank while its records are read: lists of one length.

    `communication` has the rows of communication, with columns of their own.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parsed: list[Name] = []
        self.parent_seqs: list[int | None] = []
        self.recompute: list[Any] = []
        self.args: list[str | None] = []
        self.communication: dict[int, dict[str, Any]] = {}
        self._texts: dict[bytes, str | None] = {}

    def add_arguments(self, given: dict[str, Any]) -> None:
        """Add the non-tensor arguments of a call; most calls repeat those of another."""
        key = marshal.dumps(given, 2)  # text of equal content, and quick
        if key not in self._texts:
            self._texts[key] = arguments(given)
        self.args.append(self._texts[key])

    def table(self, stacks: CallStacks, tree: CallTree) -> pa.Table:
        """Return the rows so far, each with where it came from."""
        names = self.names
        api, call_index, phase, kind, module = (
            zip(*self.parsed, strict=True) if names else ((),) * 5
        )
        parents = map(tree.parent, names)
        columns = {
            "seq": pa.array(np.arange(len(names))),
            "name": names,
            "api": api,
            "call_index": call_index,
            "phase": [
                "optimizer"
                if stacks.in_optimizer(name) or tree.part_of_step(name) == "optimizer"
                else by_name
                for name, by_name in zip(names, phase, strict=True)
            ],
            "kind": kind,
            "module": [
                own or (_module(parent) if parent else None)
                for own, parent in zip(module, parents, strict=True)
            ],
            "parent_seq": self.parent_seqs,
            "stack": list(map(stacks.text, names)),
            "micro_step": list(map(tree.micro_step, names)),
            "recompute": self.recompute,
            "args": self.args,
            **self._communication(),
        }
        return table(CALLS, columns, len(names))

    def _communication(self) -> dict[str, list[Any]]:
        rows = self.communication.values()
        columns: dict[str, list[Any]] = {
            name: [None] * len(self.names) for name in next(iter(rows), {})
        }
        for row, found in self.communication.items():
            for name, value in found.items():
                columns[name][row] = value
        return columns


@lru_cache(maxsize=1024)
def _module(name: str) -> str | None:
    return parse_name(name).module
