"""Turns a tensor of a call into its row: what it holds, and which call made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .recorder import DEFERRED
from .torch_lineage import Lineage
from .torch_stats import Measured, measure, read_back, short_dtype
from .torch_tensors import layout_of, local

Row = dict[str, Any]
"""Columns of `tensors`."""


class Rows:
    """Makes rows of tensors; knows which call made which.

    Args:
        lineage: of all tensors of this process.
    """

    def __init__(self, lineage: Lineage) -> None:
        self.lineage = lineage

    def read(self, slot: str, tensor: torch.Tensor, *, role: str = "value") -> Row:
        """Return the row of a tensor that a call reads, before it runs."""
        value = self.lineage.value_of(local(tensor))
        weight = value.weight or isinstance(tensor, torch.nn.Parameter)
        before = value.measured if value.tensor == local(tensor)._cdata else None
        row, _ = _look(slot, tensor, "parameter" if weight else "input", role, before)
        if is_bad(row) and not value.is_bad:  # not what was written: what never was
            value = self.lineage.unwritten(local(tensor)) or value
        row["value_id"] = value.id
        row["producer_seq"], row["producer_slot"] = value.seq, value.slot
        return row

    def is_reserved(self, tensor: torch.Tensor) -> bool:
        """Tell whether nothing has written a tensor's memory yet."""
        return self.lineage.value_of(local(tensor)).reserved

    def made(
        self, slot: str, tensor: torch.Tensor, seq: int, *, fresh: bool, role: str = "value"
    ) -> Row:
        """Return the row of a tensor that a call made.

        Args:
            slot: the result's.
            tensor: the result.
            seq: the call.
            fresh: it was written, not only seen through a view.
            role: `buffer` for memory that was only reserved.
        """
        row, measured = _look(slot, tensor, "output", role)
        reserved = role == "buffer"
        value = self.lineage.wrote(
            local(tensor), seq, slot, fresh=fresh, reserved=reserved, measured=measured
        )
        row["value_id"] = value.id
        return row

    def seen(self, slot: str, tensor: torch.Tensor, direction: str, role: str) -> Row:
        """Return the row of a tensor without its lineage."""
        return _look(slot, tensor, direction, role)[0]


def unread(slot: str, tensor: torch.Tensor) -> Row:
    """Return the row of a result that is not there yet: nothing is known of what it holds."""
    return {
        "slot": slot,
        "direction": "output",
        "role": "value",
        "dtype": short_dtype(tensor.dtype),
        "shape": None if tensor.is_nested else list(tensor.shape),
        "numel": None if tensor.is_nested else tensor.numel(),
        "requires_grad": tensor.requires_grad,
        "layout": layout_of(tensor),
    }


def _look(
    slot: str, tensor: torch.Tensor, direction: str, role: str, before: Measured | None = None
) -> tuple[Row, Measured | None]:
    row = unread(slot, tensor) | {"direction": direction, "role": role}
    try:
        measured = measure(local(tensor), before)
    except (RuntimeError, NotImplementedError, TypeError):  # a kind without these operations
        measured = Measured({})
    if isinstance(measured, torch.Tensor):
        row[DEFERRED] = measured
        return row, None
    row.update(measured.stats)
    return row, measured


def is_bad(row: Row) -> bool:
    """Tell whether a row is known to hold NaN or an infinity."""
    return any(row.get(key) for key in ("has_nan", "has_posinf", "has_neginf"))


def finish(rows: Sequence[Row]) -> None:
    """Fill in the numbers of rows that are still on a device."""
    found = read_back([row.pop(DEFERRED) for row in rows], [row["dtype"] for row in rows])
    for row, stats in zip(rows, found):
        row.update(stats)
