"""Who wrote which part of a piece of memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

KEPT = 256
"""Writes into one piece of memory that are remembered; of more, the oldest good one is dropped."""


class Region(NamedTuple):
    """The bytes that a tensor lies in.

    Args:
        start: first byte, from the start of the storage.
        end: byte after the last.
        period: bytes from row to row, where the tensor is a part of each row; 0: it is not.
        low: first byte in each row.
        high: byte after the last in each row.
    """

    start: int
    end: int
    period: int = 0
    low: int = 0
    high: int = 0

    def touches(self, other: Region) -> bool:
        """Tell whether the two have a byte in common, as far as that can be told simply."""
        if self.start >= other.end or other.start >= self.end:
            return False
        if self.period and self.period == other.period:
            return self.low < other.high and other.low < self.high
        return True

    def covers(self, other: Region) -> bool:
        """Tell whether every byte of the other is one of this."""
        if self.period:
            same = self.period == other.period
            inside = self.low <= other.low and self.high >= other.high
            return same and inside and self.start <= other.start and self.end >= other.end
        return self.start <= other.start and self.end >= other.end


def region_of(tensor: torch.Tensor) -> Region | None:
    """Return the bytes a tensor lies in; None for one without memory of its own."""
    if memory_of(tensor) is None or not tensor.numel():
        return None
    size = tensor.element_size()
    start = int(tensor.storage_offset()) * size
    if tensor.is_contiguous():
        return Region(start, start + tensor.numel() * size)
    spread = [(int(stride) * size, int(n)) for n, stride in zip(tensor.shape, tensor.stride())]
    end = start + sum(stride * (n - 1) for stride, n in spread) + size
    period = max((stride for stride, n in spread if n > 1), default=0)
    inner = sum(stride * (n - 1) for stride, n in spread if stride != period) + size
    low = start % period if period else 0
    if not period or inner >= period or low + inner > period:
        return Region(start, end)
    return Region(start, end, period, low, low + inner)


def memory_of(tensor: torch.Tensor) -> int | None:
    """Return the address of a tensor's storage object; None where it has no memory of its own."""
    if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.is_nested:
        return None
    if type(tensor).__name__ in ("FakeTensor", "FunctionalTensor"):
        return None
    return int(tensor.untyped_storage()._cdata)


class Writes:
    """What was written into one storage: the latest value of each part.

    Args:
        watch: tells whether the storage is alive.
    """

    def __init__(self, watch: Any) -> None:
        self.watch = watch
        self._parts: list[tuple[Region, Any]] = []

    def add(self, region: Region, value: Any) -> None:
        """Remember a write; what it covers of earlier ones is forgotten."""
        kept = [part for old in self._parts for part in _left_of(old, region)]
        if len(kept) >= KEPT:
            good = next((n for n, (_, old) in enumerate(kept) if not old.is_bad), 0)
            del kept[good]
        self._parts = [*kept, (region, value)]

    def reserved_in(self, region: Region) -> Any:
        """Return a value that touches a part and stands for memory that nothing wrote."""
        parts = (value for part, value in self._parts if part.touches(region))
        return next((value for value in parts if value.reserved), None)

    def seen_in(self, region: Region) -> Any:
        """Return the value that a read of a part sees; None when nothing was written there.

        Of several, one that is bad: it made the whole bad. Else the latest.
        """
        touching = [value for part, value in self._parts if part.touches(region)]
        return max(touching, key=lambda value: (value.is_bad, value.order), default=None)


def _left_of(old: tuple[Region, Any], new: Region) -> list[tuple[Region, Any]]:
    """Return what a write leaves of an earlier one."""
    region, value = old
    if not new.touches(region):
        return [old]
    if new.covers(region):
        return []
    if new.period or region.period:  # parts of rows: what is left is no simple region
        return [old]
    left = region._replace(end=new.start), region._replace(start=new.end)
    return [(part, value) for part in left if part.start < part.end]
