"""One call of PyTorch while it is under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from .torch_comm import Transfer
from .torch_names import Api
from .torch_rows import Row
from .torch_tensors import Slots


@dataclass
class Call:
    """One call under way.

    Args:
        api: the function.
        inputs: the tensors it was given.
        rows: of its tensors, so far.
        columns: of the call, so far.
        versions: how often each input had been changed before.
        edges: where each input's gradient goes, by its slot.
        started: mark in the order of all writes.
        transfer: what it communicates; None for a computation.
        children: rows of calls inside of it, to be written after it is known.
        inner: what its own communication brought: it reads that too.
        written: the part of its first input that a `__setitem__` writes; None: not known.
        ending: last word of its name.
        kind: compute, comm, optimizer.
        frame: in which it runs, where no function of ours does; it may be left by an exception.
    """

    api: Api
    inputs: Slots
    rows: list[Row] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)
    edges: list[tuple[str, Any, int]] = field(default_factory=list)
    started: int = 0
    transfer: Transfer | None = None
    children: list[tuple[dict[str, Any], list[Row]]] = field(default_factory=list)
    inner: list[Row] = field(default_factory=list)
    written: torch.Tensor | None = None
    ending: str = "forward"
    kind: str = "compute"
    frame: FrameType | None = None
