"""Records every call of PyTorch: what it read, what it made, where it stands.

A TorchFunctionMode sees every function of torch, of tensors and of torch.distributed, however the
user's code got hold of it, and replaces nothing. It hands over the outermost call of each; what
that calls itself is not seen, but for communication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .recorder import Recorder
from .stacks import Stacks
from .torch_backward import Backward
from .torch_comm import Communication, Transfer
from .torch_lineage import Value
from .torch_modules import ModulePaths
from .torch_names import MEMORY_ONLY, PARTLY_WRITTEN, Api, Names, api_of
from .torch_replicas import Replicas
from .torch_rows import Row, Rows
from .torch_tensors import (
    Slots,
    arguments,
    local,
    plain_arguments,
    tensors_in,
    version_of,
)

FAKE = torch._C._TorchDispatchModeKey.FAKE


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


class Calls:
    """What is done around each call.

    Args:
        recorder: takes the rows.
        rows: makes them.
        modules: tells which module runs.
    """

    def __init__(self, recorder: Recorder, rows: Rows, modules: ModulePaths) -> None:
        self.recorder, self.rows, self.modules = recorder, rows, modules
        self.names, self.stacks = Names(), Stacks()
        replicas = Replicas(recorder, rows, self.names, modules)
        self.backward = Backward(recorder, rows, self.names, replicas)
        self.comm = Communication(self)
        self.mode = CallMode(self)
        self._apis: dict[Any, Api] = {}
        self._without_result: set[Any] = set()

    def run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run one call once, and record it."""
        if not self.recorder.on or self.recorder.busy or _is_traced():
            return func(*args, **kwargs)
        api = self._api(func)
        if api.skip:
            return func(*args, **kwargs)
        if api.comm and self.comm.completes(api, args):
            return self.comm.complete(func, args, kwargs)
        parent: Call | None = getattr(self.recorder.thread, "call", None)
        if parent and (parent.transfer or not api.comm):
            return func(*args, **kwargs)
        return self._record(api, func, args, kwargs, parent)

    def _api(self, func: Any) -> Api:
        try:
            return self._apis[func]
        except KeyError:
            return self._apis.setdefault(func, api_of(func))
        except TypeError:  # not hashable
            return api_of(func)

    def _record(
        self,
        api: Api,
        func: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        parent: Call | None,
    ) -> Any:
        call = self.recorder.guarded(self.begin, api, func, args, kwargs)
        thread = self.recorder.thread
        thread.call = call
        try:
            result = func(*args, **kwargs)
        except BaseException:
            thread.call = parent
            if call:
                self.recorder.guarded(self._raised, call)
            raise
        thread.call = parent
        if call:
            self.recorder.guarded(self.end, call, func, result, kwargs, parent)
        return result

    def begin(
        self, api: Api, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Call | None:
        """Take down what a call reads; nothing for one that never had a tensor as its result."""
        if func in self._without_result:
            return Call(api, [])
        call = Call(api, arguments(args, kwargs), started=self.rows.lineage.now())
        if api.comm:
            call.transfer = self.comm.transfer_of(api, func, args, kwargs)
        roles = call.transfer.roles if call.transfer else {}
        written = {id(t) for _, t in tensors_in(kwargs.get("out"), "out", [])}
        for slot, tensor in call.inputs:
            only_memory = id(tensor) in written or slot in PARTLY_WRITTEN.get(api.name, ())
            role = "buffer" if only_memory else roles.get(id(tensor), "value")
            call.rows.append(self.rows.read(slot, tensor, role=role))
            call.versions.append(version_of(tensor))
            if tensor.requires_grad:
                call.edges.append((slot, *self.backward.edge_of(tensor)))
        call.columns = self.place() | {"args": plain_arguments(args, kwargs) or None}
        return call

    def place(self) -> dict[str, Any]:
        """Return where in the user's code and in the model the thread stands."""
        stack = self.stacks.text()
        in_backward = torch._C._current_graph_task_id() != -1
        again = in_backward and "torch/utils/checkpoint.py" in stack
        return {
            "stack": stack,
            "module": self.modules.current(),
            "phase": "backward" if in_backward and not again else "forward",
            "recompute": again,
            "state": "ok",
        }

    def end(
        self,
        call: Call,
        func: Any,
        result: Any,
        kwargs: Mapping[str, Any],
        parent: Call | None = None,
    ) -> None:
        """Take down what a call made, and write it."""
        results = tensors_in(result, "output", [])
        results = [("output.0" if slot == "output" else slot, t) for slot, t in results]
        if call.transfer:
            self.comm.end(call, result, results, parent)
            return
        given = {id(t) for _, t in tensors_in(kwargs.get("out"), "out", [])}
        changed = [
            (slot, tensor)
            for (slot, tensor), version in zip(call.inputs, call.versions)
            if version_of(tensor) != version or id(tensor) in given
        ]
        seen = {id(tensor) for _, tensor in results}
        results += [(f"output.{slot}", t) for slot, t in changed if id(t) not in seen]
        if not results:
            if not call.inputs or not call.children:
                self._without_result.add(func)
            return
        self._without_result.discard(func)
        call.columns = call.columns or self.place()
        self._finish(call, results, {id(t) for _, t in changed}, parent)

    def _finish(self, call: Call, results: Slots, changed: set[int], parent: Call | None) -> None:
        seq = self.recorder.next_seq()
        name, number = self.names.next(call.api.prefix, call.api.name)
        reserved = {memory_of(t) for _, t in call.inputs if self.rows.is_reserved(t)}
        read = {memory_of(t) for _, t in call.inputs}
        partly = PARTLY_WRITTEN.get(call.api.name, ())
        fresh = [
            slot not in partly and (bool(partly) or id(t) in changed or memory_of(t) not in read)
            for slot, t in results
        ]
        if reserved and not any(fresh):  # a view of memory reads none of it
            call.rows = [row | {"role": "buffer"} for row in call.rows]
        rows = [*call.rows, *call.inner]
        for (slot, tensor), new in zip(results, fresh):
            only_memory = (
                call.api.name in MEMORY_ONLY
                or slot in partly
                or (not new and memory_of(tensor) in reserved)
            )
            inside = self._made_inside(call, tensor)
            if inside:
                rows.append(self.rows.seen(slot, tensor, "output", "echo"))
                rows[-1].update(value_id=inside.id, producer_seq=inside.seq)
            else:
                role = "buffer" if only_memory else "value"
                rows.append(self.rows.made(slot, tensor, seq, fresh=new, role=role))
        call.columns |= {
            "seq": seq,
            "name": name,
            "api": call.api.name,
            "call_index": number,
            "kind": "compute",
        }
        self.write(call.columns, rows, call, parent)
        self.backward.attach(call.columns, results, call.edges)

    def _made_inside(self, call: Call, tensor: torch.Tensor) -> Value | None:
        """Return the value of a result that a recorded call inside of a Function made."""
        if call.api.prefix != "Function":
            return None
        value = self.rows.lineage.value_of(local(tensor))
        return value if value.order > call.started and value.seq is not None else None

    def write(
        self, columns: dict[str, Any], rows: list[Row], call: Call, parent: Call | None
    ) -> None:
        """Write a call, or keep it until the call around it is known."""
        family = [(columns, rows), *call.children]
        for child, _ in call.children:
            child.setdefault("parent_seq", columns["seq"])
        if parent and "seq" in parent.columns:  # an asynchronous one, waited for later
            columns["parent_seq"] = parent.columns["seq"]
        elif parent:
            parent.children += family
            return
        for one, its_rows in family:
            self.recorder.add(one, [row | {"seq": one["seq"]} for row in its_rows])

    def _raised(self, call: Call) -> None:
        seq = self.recorder.next_seq()
        name, number = self.names.next(call.api.prefix, call.api.name)
        columns = call.columns | {
            "seq": seq,
            "name": name,
            "api": call.api.name,
            "call_index": number,
            "kind": "comm" if call.transfer else "compute",
            "state": "raised",
        }
        self.write(columns, call.rows, call, None)


class CallMode(TorchFunctionMode):
    """Hands every call of PyTorch over to `Calls`; the first one in a thread's stack of modes."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if torch.compiler.is_compiling():  # a constant there: nothing of ours gets into the graph
            return func(*args, **kwargs or {})
        return self._calls.run(func, args, kwargs or {})


def _is_traced() -> bool:
    """Tell whether tensors stand for others: inside of torch.func transforms, fake tensors."""
    if torch._C._functorch.maybe_current_level() is not None:
        return True
    stack: int = torch._C._len_torch_dispatch_stack()
    return stack > 0 and torch._C._get_dispatch_mode(FAKE) is not None


def memory_of(tensor: torch.Tensor) -> int | None:
    """Return the address of a tensor's storage object; None where it has no memory of its own."""
    tensor = local(tensor)
    if tensor.layout != torch.strided or tensor.device.type == "meta":
        return None
    return int(tensor.untyped_storage()._cdata)
