"""Records every call of PyTorch: what it read, what it made, where it stands.

A TorchFunctionMode sees every function of torch, of tensors and of torch.distributed, however the
user's code got hold of it, and replaces nothing. It hands over the outermost call of each; what
that calls itself is not seen, but for communication.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .recorder import Recorder
from .stacks import Stacks
from .torch_backward import Backward
from .torch_call import Call
from .torch_comm import Communication
from .torch_memory import memory_of
from .torch_modules import ModulePaths
from .torch_names import PARTIAL_WRITES, PARTLY_WRITTEN, Api, Names, api_of
from .torch_replicas import Replicas
from .torch_results import result_rows
from .torch_rows import Row, Rows
from .torch_tensors import Slots, arguments, local, plain_arguments, tensors_in, version_of

FAKE = torch._C._TorchDispatchModeKey.FAKE


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

    def run(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run one call once, and record it."""
        if not self.recorder.on or self.recorder.busy or _is_traced():
            return func(*args, **kwargs)
        api = self._api(func)
        if api.skip:
            return func(*args, **kwargs)
        if api.comm and self.comm.completes(api, args):
            return self.comm.complete(func, args, kwargs)
        parent = self.around()
        if parent and (parent.transfer or not api.comm):
            return func(*args, **kwargs)
        self.comm.complete_inputs(args, kwargs)
        return self._record(api, func, args, kwargs, parent)

    def around(self) -> Call | None:
        """Return the recorded call that this thread is inside of."""
        call: Call | None = getattr(self.recorder.thread, "call", None)
        if call and call.frame and not _runs(call.frame):  # an optimizer's step that raised
            self.recorder.thread.call = None
            self.recorder.guarded(self.raised, call)
            return None
        return call

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
        except BaseException as error:
            thread.call = parent
            if call:
                self.recorder.guarded(self.raised, call, error)
            raise
        thread.call = parent
        if call:
            self.recorder.guarded(self.end, call, result, kwargs, parent)
        return result

    def begin(
        self, api: Api, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Call | None:
        """Take down what a call reads."""
        inputs = arguments(args, kwargs)
        self.comm.settle(inputs)
        call = Call(api, inputs, started=self.rows.lineage.now())
        if api.comm:
            call.transfer = self.comm.transfer_of(api, func, args, kwargs)
            call.kind = "comm" if call.transfer else "compute"
        roles = call.transfer.roles if call.transfer else {}
        if api.name in PARTIAL_WRITES:
            call.written = _part(*args[:2]) if api.name == "__setitem__" else None
            if call.written is not None or self.rows.is_reserved(args[0]):
                roles = {id(args[0]): "buffer"}
        written = {id(t) for _, t in tensors_in(kwargs.get("out"), "out", [])}
        for slot, tensor in call.inputs:
            only_memory = id(tensor) in written or slot in PARTLY_WRITTEN.get(api.name, ())
            role = "buffer" if only_memory else roles.get(id(tensor), "value")
            call.rows.append(self.rows.read(slot, tensor, role=role))
            call.versions.append(version_of(tensor))
            wanted = tensor.requires_grad and torch.is_grad_enabled()
            edge = self.backward.edge_of(tensor) if wanted else None
            if edge:
                call.edges.append((slot, *edge))
        call.columns = self.place() | {"args": plain_arguments(args, kwargs) or None}
        return call

    def outer(self) -> int | None:
        """Return the Function of autograd that this thread is inside of."""
        return getattr(self.recorder.thread, "outer", None)

    def place(self) -> dict[str, Any]:
        """Return where in the user's code and in the model the thread stands."""
        stack = self.stacks.text()
        in_backward = torch._C._current_graph_task_id() != -1
        again = in_backward and "torch/utils/checkpoint.py" in stack
        return {
            "stack": stack,
            "module": self.modules.current(),
            "parent_seq": self.outer(),
            "micro_step": self.modules.micro_step,
            "phase": "backward" if in_backward and not again else "forward",
            "recompute": again,
            "state": "ok",
        }

    def end(
        self,
        call: Call,
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
        if results:
            self._finish(call, results, {id(t) for _, t in changed}, parent)

    def _finish(self, call: Call, results: Slots, changed: set[int], parent: Call | None) -> None:
        self.number(call)
        made = result_rows(self.rows, call, results, changed, call.columns["seq"])
        self.write(call.columns, [*call.rows, *call.inner, *made], call, parent)
        self.backward.attach(call.columns, results, call.edges)

    def write(
        self, columns: dict[str, Any], rows: list[Row], call: Call, parent: Call | None
    ) -> None:
        """Write a call, or keep it until the call around it is known."""
        family = [(columns, rows), *call.children]
        for child, _ in call.children:
            child["parent_seq"] = columns["seq"]
        if parent and "seq" in parent.columns:  # an asynchronous one, waited for later
            columns["parent_seq"] = parent.columns["seq"]
        elif parent:
            parent.children += family
            return
        for one, its_rows in family:
            self.recorder.add(one, [row | {"seq": one["seq"]} for row in its_rows])

    def raised(self, call: Call, error: BaseException | None = None) -> None:
        """Write a call that ended in an exception: what it read."""
        self.number(call)
        if type(error).__name__ != "_StopRecomputationError":  # a checkpoint has all it needs
            call.columns["state"] = "raised"
        self.write(call.columns, call.rows, call, None)

    def number(self, call: Call) -> None:
        """Give a call its place among the others, and its name."""
        name, number = self.names.next(call.api.prefix, call.api.name, call.ending)
        if call.transfer:
            call.columns |= call.transfer.columns
        call.columns.setdefault("seq", self.recorder.next_seq())
        call.columns |= {
            "name": name,
            "api": call.transfer.api if call.transfer else call.api.name,
            "call_index": number,
            "kind": call.kind,
        }


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


def _part(tensor: torch.Tensor, index: Any) -> torch.Tensor | None:
    """Return the view of a tensor that an index writes; None where it is no view."""
    part = tensor.detach()[index]
    return part if memory_of(local(part)) == memory_of(local(tensor)) else None


def _is_traced() -> bool:
    """Tell whether tensors stand for others: inside of torch.func transforms, fake tensors."""
    if torch._C._functorch.maybe_current_level() is not None:
        return True
    stack: int = torch._C._len_torch_dispatch_stack()
    return stack > 0 and torch._C._get_dispatch_mode(FAKE) is not None


def _runs(frame: FrameType) -> bool:
    """Tell whether a frame is one of those that the caller stands in."""
    here: FrameType | None = sys._getframe(1)
    while here is not None and here is not frame:
        here = here.f_back
    return here is not None
