"""The calls of one rank's records, as a table."""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from collectors.schema import CALLS, table

from .context import CallStacks, CallTree
from .names import Name, parse_name
from .values import Leaf, arguments


class Calls:
    """The calls of one rank while its records are read: lists of one length.

    `communication` has the rows of communication, with columns of their own.
    """

    def __init__(self, stacks: CallStacks, tree: CallTree) -> None:
        self._stacks = stacks
        self._tree = tree
        self.names: list[str] = []
        self._parsed: list[Name] = []
        self._parent_seqs: list[int | None] = []
        self._recompute: list[bool | None] = []
        self.args: list[str | None] = []
        self.communication: dict[int, dict[str, Any]] = {}
        self._texts: dict[bytes, str | None] = {}

    def add(self, names: Sequence[str]) -> list[Name]:
        """Add the calls of one file; return their names, taken apart."""
        seqs = {name: seq for seq, name in enumerate(names, len(self.names))}
        parents = map(self._tree.parent, names)
        self._parent_seqs += [seqs.get(parent) if parent else None for parent in parents]
        self.names += names
        parsed = list(map(parse_name, names))
        self._parsed += parsed
        return parsed

    def add_content(self, recompute: bool | None, given: Sequence[Leaf]) -> None:
        """Add what the next call holds: its non-tensor arguments often repeat those of another."""
        key = marshal.dumps(tuple(given), 2)  # as good as equality, and quick
        if key not in self._texts:
            self._texts[key] = arguments(dict(given))
        self.args.append(self._texts[key])
        self._recompute.append(recompute)

    def table(self) -> pa.Table:
        """Return the rows so far, each with where it came from."""
        names, stacks, tree = self.names, self._stacks, self._tree
        api, call_index, phase, kind, module = (
            zip(*self._parsed, strict=True) if names else ((),) * 5
        )
        parents = map(tree.parent, names)
        optimizer = stacks.optimizer | tree.optimizer
        columns = {
            "seq": pa.array(np.arange(len(names))),
            "name": names,
            "api": api,
            "call_index": call_index,
            "phase": [
                "optimizer" if name in optimizer else by_name
                for name, by_name in zip(names, phase, strict=True)
            ],
            "kind": kind,
            "module": [
                own or (_module(parent) if parent else None)
                for own, parent in zip(module, parents, strict=True)
            ],
            "parent_seq": self._parent_seqs,
            "stack": list(map(stacks.text, names)),
            "micro_step": list(map(tree.micro_step, names)),
            "recompute": self._recompute,
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
