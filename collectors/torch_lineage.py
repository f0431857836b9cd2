"""Which earlier call made this very tensor: by the tensor's identity and the memory it lies in.

A result is known by its TensorImpl. Memory is known by what was written into which part of it: a
view that nothing recorded made, or a tensor that was changed through another one, is found by that.
Both are watched by weak references of C++, which keep an address from being used again while it is
known here, and never keep memory of the training process.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .torch_memory import Region, Writes, memory_of, region_of
from .torch_stats import Measured


class Value(NamedTuple):
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


class Lineage:
    """The values of all tensors that are alive and known."""

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[Any, tuple[int, int] | None, Value]] = {}
        self._memory: dict[int, Writes] = {}
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
        region = region_of(tensor) if fresh else None
        if region:
            self._write(tensor.untyped_storage(), region, value)
        return value

    def is_weight(self, tensor: torch.Tensor) -> None:
        """Remember the memory of a parameter or buffer, unless its writes are known."""
        region = region_of(tensor)
        if region and self.in_memory(tensor) is None:
            order = next(self._order)
            value = Value(order, order, None, None, weight=True)
            self._write(tensor.untyped_storage(), region, value)

    def reallocated(self, storage: torch.UntypedStorage) -> None:
        """Forget what was written into memory that was given back and taken anew."""
        order = next(self._order)
        self._memory.pop(storage._cdata, None)
        whole = Region(0, storage.nbytes())
        self._write(storage, whole, Value(order, order, None, None, reserved=True))

    def value_of(self, tensor: torch.Tensor) -> Value:
        """Return the value that a read sees; one that nobody made is known from then on."""
        by_tensor, by_memory = self._known(tensor), self.in_memory(tensor)
        if by_tensor and (by_memory is None or by_tensor.order >= by_memory.order):
            return by_tensor
        if by_memory:
            return by_memory
        order = next(self._order)
        value = Value(order, order, None, None)
        self._know(tensor, value)
        return value

    def in_memory(self, tensor: torch.Tensor) -> Value | None:
        """Return the value that was written where a tensor lies, whichever tensor that was."""
        region = region_of(tensor)
        writes = self._memory.get(tensor.untyped_storage()._cdata) if region else None
        value: Value | None = writes.seen_in(region) if writes and region else None
        return value

    def unwritten(self, tensor: torch.Tensor) -> Value | None:
        """Return what stands for memory in which a tensor lies in part and that nothing wrote."""
        region = region_of(tensor)
        writes = self._memory.get(tensor.untyped_storage()._cdata) if region else None
        value: Value | None = writes.reserved_in(region) if writes and region else None
        return value

    def _known(self, tensor: torch.Tensor) -> Value | None:
        entry = self._tensors.get(tensor._cdata)
        # `tensor.data = other` gives a tensor other memory
        return entry[2] if entry and entry[1] == _place(tensor) else None

    def _know(self, tensor: torch.Tensor, value: Value) -> None:
        self._tensors[tensor._cdata] = _weak(tensor), _place(tensor), value
        if len(self._tensors) + len(self._memory) > self._sweep_at:
            self._sweep()

    def _write(self, storage: torch.UntypedStorage, region: Region, value: Value) -> None:
        writes = self._memory.get(storage._cdata)
        if writes is None:
            writes = self._memory[storage._cdata] = Writes(StorageWeakRef(storage))
        writes.add(region, value)

    def _sweep(self) -> None:
        """Forget what is dead."""
        for key in [k for k, (watch, _, _) in self._tensors.items() if watch.expired()]:
            del self._tensors[key]
        for key in [k for k, writes in self._memory.items() if writes.watch.expired()]:
            del self._memory[key]
        self._sweep_at = max(4096, 2 * (len(self._tensors) + len(self._memory)))


def _place(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return where a tensor lies: its storage and the offset there."""
    memory = memory_of(tensor)
    return None if memory is None else (memory, int(tensor.storage_offset()))


def _weak(tensor: torch.Tensor) -> Any:
    """Return a reference that neither keeps a tensor alive nor lets its address be used again."""
    return torch._C._WeakTensorRef(tensor)  # type: ignore[attr-defined]
