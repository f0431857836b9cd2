"""Which earlier call made this very tensor: by the tensor's identity and the memory it lies in.

A result is known by its TensorImpl. Memory is known by what was written into which part of it: a
view that nothing recorded made, or a tensor that was changed through another one, is found by that.
Both are watched by weak references of C++, which keep an address from being used again while it is
known here, and never keep memory of the training process.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .torch_stats import Measured

KEPT_WRITES = 64
"""Writes into one piece of memory that are remembered, the latest ones."""


@dataclass(frozen=True)
class Value:
    """One value of a tensor.

    Args:
        id: of this value; another one for each write.
        order: of the write among all writes; reads follow the latest.
        seq: the call that made it; None: nothing on record did.
        slot: the call's result.
        tensor: address of the TensorImpl it was made in.
        measured: what it held then, if that is known on the host.
        reserved: nothing wrote it yet: what it holds means nothing.
        weight: it is a parameter or buffer of the model, as it came in.
    """

    id: int
    order: int
    seq: int | None
    slot: str | None
    tensor: int = 0
    measured: Measured | None = None
    reserved: bool = False
    weight: bool = False

    @property
    def is_bad(self) -> bool:
        """Tell whether it is known to hold NaN or an infinity, and that means something."""
        stats = {} if self.reserved or not self.measured else self.measured.stats
        return any(stats.get(key) for key in ("has_nan", "has_posinf", "has_neginf"))


@dataclass
class _Memory:
    """The writes into one storage: (first byte, byte after the last, value)."""

    watch: StorageWeakRef
    writes: list[tuple[int, int, Value]]


class Lineage:
    """The values of all tensors that are alive and known."""

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[Any, Value]] = {}
        self._memory: dict[int, _Memory] = {}
        self._order = itertools.count(1)
        self._sweep_at = 4096

    def now(self) -> int:
        """Return a mark: every later write has a higher order."""
        return next(self._order)

    def wrote(
        self,
        tensor: torch.Tensor,
        seq: int,
        slot: str,
        *,
        fresh: bool,
        reserved: bool = False,
        measured: Measured | None = None,
    ) -> Value:
        """Remember what a call made.

        Args:
            tensor: the result.
            seq: the call.
            slot: the result's.
            fresh: the memory was written, not only seen through another view.
            reserved: whether the memory was only reserved.
            measured: what it holds.
        """
        order = next(self._order)
        value = Value(order, order, seq, slot, tensor._cdata, measured, reserved)
        self._know(tensor, value)
        if fresh and (span := _span(tensor)):
            self._write(tensor, span, value)
        return value

    def is_weight(self, tensor: torch.Tensor) -> None:
        """Remember the memory of a parameter or buffer, unless its writes are known."""
        span = _span(tensor)
        if span and self._latest_in(tensor) is None:
            order = next(self._order)
            self._write(tensor, span, Value(order, order, None, None, weight=True))

    def reallocated(self, storage: torch.UntypedStorage) -> None:
        """Forget what was written into memory that was given back and taken anew."""
        order = next(self._order)
        value = Value(order, order, None, None, reserved=True)
        whole = (0, storage.nbytes(), value)
        self._memory[storage._cdata] = _Memory(StorageWeakRef(storage), [whole])

    def value_of(self, tensor: torch.Tensor) -> Value:
        """Return the value that a read sees; one that nobody made is known from then on."""
        known = self._tensors.get(tensor._cdata)
        by_memory = self._latest_in(tensor)
        if known and (by_memory is None or known[1].order >= by_memory.order):
            return known[1]
        if by_memory:
            return by_memory
        order = next(self._order)
        value = Value(order, order, None, None)
        self._know(tensor, value)
        return value

    def _know(self, tensor: torch.Tensor, value: Value) -> None:
        self._tensors[tensor._cdata] = _weak(tensor), value
        if len(self._tensors) + len(self._memory) > self._sweep_at:
            self._sweep()

    def _write(self, tensor: torch.Tensor, span: tuple[int, int], value: Value) -> None:
        storage = tensor.untyped_storage()
        memory = self._memory.setdefault(storage._cdata, _Memory(StorageWeakRef(storage), []))
        start, end = span
        kept = [write for write in memory.writes if write[0] < start or write[1] > end]
        memory.writes = [*kept[1 - KEPT_WRITES :], (start, end, value)]

    def _latest_in(self, tensor: torch.Tensor) -> Value | None:
        span = _span(tensor)
        memory = self._memory.get(tensor.untyped_storage()._cdata) if span else None
        if not span or not memory:
            return None
        touching = [w for start, end, w in memory.writes if start < span[1] and end > span[0]]
        # of several parts the bad one is what made the whole bad
        return max(touching, key=lambda value: (value.is_bad, value.order), default=None)

    def _sweep(self) -> None:
        """Forget what is dead."""
        for key in [k for k, (watch, _) in self._tensors.items() if watch.expired()]:
            del self._tensors[key]
        for key in [k for k, memory in self._memory.items() if memory.watch.expired()]:
            del self._memory[key]
        self._sweep_at = max(4096, 2 * (len(self._tensors) + len(self._memory)))


def _weak(tensor: torch.Tensor) -> Any:
    """Return a reference that neither keeps a tensor alive nor lets its address be used again."""
    return torch._C._WeakTensorRef(tensor)  # type: ignore[attr-defined]


def _span(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the bytes a tensor lies in; None for one without memory of its own."""
    if (
        not tensor.numel()
        or tensor.layout != torch.strided
        or type(tensor).__name__ == "FakeTensor"
    ):
        return None
    if tensor.device.type == "meta":
        return None
    size = tensor.element_size()
    start = int(tensor.storage_offset()) * size
    last = sum(int((n - 1) * stride) for n, stride in zip(tensor.shape, tensor.stride()))
    return start, start + (last + 1) * size
