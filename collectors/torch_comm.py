"""What a communication call is about: its group, the other end, the tensors it reads and fills."""

from __future__ import annotations

import inspect
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from .torch_memory import memory_of
from .torch_names import Api
from .torch_rows import Row, unread
from .torch_tensors import Slots, arguments, local, tensors_in

if TYPE_CHECKING:
    from .torch_call import Call

_c10d: Any = dist.distributed_c10d

SAME = {
    "all_gather_single": "all_gather_into_tensor",
    "_all_gather_base": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "all_reduce_": "all_reduce",
    "broadcast_": "broadcast",
}
"""Newer and older names of an operation -> the one that stands in `api`."""

FILLED = {
    "recv": ("tensor",),
    "irecv": ("tensor",),
    "all_gather": ("tensor_list",),
    "all_gather_into_tensor": ("output_tensor",),
    "gather": ("gather_list",),
    "scatter": ("tensor",),
    "reduce_scatter": ("output",),
    "reduce_scatter_tensor": ("output",),
    "all_to_all_single": ("output",),
    "all_to_all": ("output_tensor_list",),
}
"""Operation -> parameters that it only writes into."""

IN_PLACE = {
    "all_reduce": ("tensor",),
    "broadcast": ("tensor",),
    "reduce": ("tensor",),
    "all_reduce_coalesced": ("tensors",),
}
"""Operation -> parameters that it reads and writes."""


PATIENCE = 0.1
"""Seconds to wait for an operation that is read, or open when the step ends, to be done."""


@dataclass
class Transfer:
    """What one communication call is about.

    Args:
        api: the operation.
        columns: of the call.
        roles: id of a tensor -> `buffer` where it is only written into.
        fills: the tensors that hold a result afterwards, with their slots.
        waits: the result is there after a wait alone.
        coalesced_in: the group that runs it together with others, when all of them are known.
        work: to be waited for.
    """

    api: str
    columns: dict[str, Any]
    roles: dict[int, str] = field(default_factory=dict)
    fills: Slots = field(default_factory=list)
    waits: bool = False
    coalesced_in: Any = None
    work: Any = None


class Communication:
    """Records communication calls; an asynchronous one when it has been waited for.

    Args:
        calls: the calls of this process.
    """

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self._numbers: dict[str, int] = defaultdict(int)
        self._signatures: dict[Any, inspect.Signature] = {}
        self._waited_for: dict[int, tuple[Any, ...]] = {}
        self._open: list[tuple[Call, Call | None]] = []

    def completes(self, api: Api, args: Sequence[Any]) -> bool:
        """Tell whether a call only waits for another one, or wraps its result."""
        return api.name in ("wait_tensor", "_wrap_tensor_autograd")

    def complete(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Wait, then record the operation that was waited for."""
        result = func(*args, **kwargs)
        found = self._waited_for.get(local(args[0])._cdata) if args else None
        if found and func.__name__.startswith("wait_tensor"):
            self._calls.recorder.guarded(self._close, *found[:2])
        elif found:
            self._waited_for[local(result)._cdata] = found
        return result

    def complete_inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Wait for what a call is about to read, as it would itself."""
        for _, tensor in arguments(args, kwargs):
            waiting: Any = tensor
            if type(tensor).__name__ == "AsyncCollectiveTensor" and not waiting.completed:
                self.complete(torch.ops._c10d_functional.wait_tensor, (waiting.elem,), {})
                waiting.completed = True

    def transfer_of(
        self, api: Api, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Transfer | None:
        """Return what a call of torch.distributed is about, before it runs.

        None for one of a group that this rank is not in: PyTorch does nothing then.
        """
        name = SAME.get(api.name, api.name)
        if getattr(func, "__module__", "").startswith("torch._ops"):
            return self._functional(name, args)
        given = self._bound(func, args, kwargs)
        group = given.get("group")
        if group is not None and group == dist.GroupMember.NON_GROUP_MEMBER:
            return None
        columns = self._group_columns(group, name) | self._ends(name, given, group)
        fills = [key for key in (*FILLED.get(name, ()), *IN_PLACE.get(name, ())) if key in given]
        transfer = Transfer(name, columns, waits=bool(given.get("async_op")) or name[:1] == "i")
        columns["async"] = transfer.waits
        if (group or dist.group.WORLD) in _c10d._world.pg_coalesce_state:
            transfer.waits, transfer.coalesced_in = True, group or dist.group.WORLD
        at_root = columns.get("root") in (None, dist.get_rank())
        for key in FILLED.get(name, ()):
            for _, tensor in tensors_in(given.get(key), key, []):
                transfer.roles[id(tensor)] = "buffer"
        if name == "broadcast" and not at_root:
            transfer.roles[id(given["tensor"])] = "buffer"
        if not (name in ("reduce", "gather") and not at_root):
            for place, key in enumerate(fills):
                slot = f"output.{place}"
                transfer.fills += tensors_in(given[key], slot, [])
        return transfer

    def _functional(self, name: str, args: Sequence[Any]) -> Transfer:
        """Return what an operation of _c10d_functional is about: its last argument is the group."""
        name = name.replace("_coalesced", "")
        names = [value for value in args if isinstance(value, str)]
        columns: dict[str, Any] = {"async": True}
        if names:
            group = _c10d._resolve_process_group(names[-1])
            columns |= self._group_columns(group, name)
        if len(names) > 1:
            columns["reduce_op"] = names[0].upper()
        transfer = Transfer(name, columns, waits=True)
        if name == "broadcast":
            columns["root"] = _c10d.get_global_rank(group, args[1])
            if columns["root"] != dist.get_rank():
                transfer.roles[id(args[0])] = "buffer"
        return transfer

    def _bound(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if func not in self._signatures:
            self._signatures[func] = inspect.signature(func)
        return dict(self._signatures[func].bind(*args, **kwargs).arguments)

    def _group_columns(self, group: Any, name: str) -> dict[str, Any]:
        group = group or dist.group.WORLD
        ranks = dist.get_process_group_ranks(group)
        columns: dict[str, Any] = {"group_id": group.group_name, "group_ranks": ranks}
        if not _is_point_to_point(name):
            columns["group_seq"] = self._numbers[group.group_name]
            self._numbers[group.group_name] += 1
        return columns

    def _ends(self, name: str, given: Mapping[str, Any], group: Any) -> dict[str, Any]:
        """Return root or peer as a global rank, the tag and the reduction."""
        columns: dict[str, Any] = {}
        for word in ("src", "dst"):
            end = given.get(word)
            if end is None and given.get(f"group_{word}") is not None:
                end = _c10d.get_global_rank(group or dist.group.WORLD, given[f"group_{word}"])
            if end is not None:
                columns["peer" if _is_point_to_point(name) else "root"] = end
        if "root" not in columns and name in ("broadcast", "scatter", "gather", "reduce"):
            columns["root"] = 0
        if "tag" in given:
            columns["tag"] = given["tag"]
        if name.startswith(("all_reduce", "reduce")):
            op = given.get("op", dist.ReduceOp.SUM)
            columns["reduce_op"] = str(op).rpartition(".")[2]
        return columns

    def end(self, call: Call, result: Any, results: Slots, parent: Call | None) -> None:
        """Record a call that came back; one that must be waited for, after the wait."""
        transfer = call.transfer
        assert transfer is not None
        call.columns["seq"] = self._calls.recorder.next_seq()
        if transfer.api == "recv" and isinstance(result, int):  # from anyone: it tells who it was
            transfer.columns.setdefault("peer", result)
        if not transfer.fills:
            transfer.fills = results
        if not transfer.waits:
            self._close(call, parent)
            return
        self._open.append((call, parent))
        if isinstance(result, dist.Work):
            transfer.work = result
        for _, tensor in results:
            self._waited_for[tensor._cdata] = (call, parent, tensor)

    def waited(self, work: Any) -> None:
        """Record the operation whose `wait` has returned, and those that ran together."""
        for call, parent in list(self._open):
            transfer = call.transfer
            if transfer and (transfer.work is work or _ran_together(transfer)):
                self._calls.recorder.guarded(self._close, call, parent)

    def settle(self, read: Slots) -> None:
        """Record the operations that are done, before a call reads what they brought."""
        if not self._open:
            return
        memory = {memory_of(local(tensor)) for _, tensor in read}
        for call, parent in list(self._open):
            fills = call.transfer.fills if call.transfer else []
            read_here = any(memory_of(local(t)) in memory for _, t in fills)
            if read_here and _is_done(call, time.monotonic() + PATIENCE):
                self._close(call, parent)

    def close_all(self) -> None:
        """Record what nobody waited for; without its results where it is still under way."""
        until = time.monotonic() + PATIENCE
        for call, parent in list(self._open):
            self._close(call, parent, there=_is_done(call, until))
        self._waited_for.clear()

    def _close(self, call: Call, parent: Call | None, *, there: bool = True) -> None:
        """Write an operation; what it brought may not be there."""
        transfer, seq = call.transfer, call.columns["seq"]
        if transfer is None or "name" in call.columns:
            return
        self._open = [pair for pair in self._open if pair[0] is not call]
        self._waited_for = {k: v for k, v in self._waited_for.items() if v[0] is not call}
        calls = self._calls
        calls.number(call)
        made: list[Row] = [
            calls.rows.made(slot, tensor, seq, fresh=True) if there else unread(slot, tensor)
            for slot, tensor in transfer.fills
        ]
        if parent and there:
            parent.inner += [
                calls.rows.read(f"inner.{seq}.{slot}", local(tensor))
                for slot, tensor in transfer.fills
            ]
        calls.write(call.columns, [*call.rows, *made], call, parent)


def _is_point_to_point(name: str) -> bool:
    return name.startswith(("send", "recv", "isend", "irecv"))


def _ran_together(transfer: Transfer) -> bool:
    """Tell whether an operation was handed over with others, and they were started."""
    group = transfer.coalesced_in
    return group is not None and group not in _c10d._world.pg_coalesce_state


def _is_done(call: Call, until: float) -> bool:
    """Tell whether an operation is done; wait a little, its work may be slow to know."""
    transfer = call.transfer
    if transfer is None or transfer.work is None:
        return transfer is not None and _ran_together(transfer)
    while not (done := bool(transfer.work.is_completed())) and time.monotonic() < until:
        time.sleep(0.001)
    return done
