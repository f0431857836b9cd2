"""Records an optimizer's update and the clipping of gradients, each as one call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from .torch_call import Call
from .torch_calls import Calls
from .torch_names import Api
from .torch_rows import Row
from .torch_tensors import Slots


class Phases:
    """Takes down parameters and gradients before and after; what happens in between is inside.

    Args:
        calls: the calls of this process.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls, self._recorder = calls, calls.recorder
        self._handles: list[Any] = []

    def start(self) -> None:
        """Hook the steps of all optimizers."""
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]

    def stop(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._recorder.thread.call = None

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        closure = [v for v in (*args[1:], *kwargs.values()) if callable(v)]
        if closure or self._calls.around():
            return  # a closure runs the whole model: its calls are the outermost ones
        call = self._recorder.guarded(
            self._begin, type(optimizer).__name__, _state(optimizer), "step", "optimizer"
        )
        if call:
            call.frame = sys._getframe(1)
        self._recorder.thread.call = call

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        call = getattr(self._recorder.thread, "call", None)
        if isinstance(call, Call) and call.api.prefix == "Optimizer":
            self._recorder.thread.call = None
            weights = [(slot, t) for slot, t in call.inputs if ".param." in slot]
            self._recorder.guarded(self._end, call, weights)

    def clip(self, original: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        """Run a function that clips gradients, and record it."""
        parameters = args[0] if args else kwargs["parameters"]
        if not isinstance(parameters, (torch.Tensor, list, tuple)):
            parameters = list(parameters)  # a generator can be read once
            args = (parameters, *args[1:]) if args else args
            kwargs = kwargs if args else {**kwargs, "parameters": parameters}
        outer = self._calls.around()
        one = [parameters] if isinstance(parameters, torch.Tensor) else parameters
        found = [(f"input.grad.{n}", p.grad) for n, p in enumerate(one) if p.grad is not None]
        call = self._recorder.guarded(self._begin, original.__name__, found, "clip", "compute")
        self._recorder.thread.call = call or outer
        try:
            result = original(*args, **kwargs)
        except BaseException:
            self._recorder.thread.call = outer
            if call:
                self._recorder.guarded(self._calls.raised, call)
            raise
        self._recorder.thread.call = outer
        if call:
            results = list(found)
            if isinstance(result, torch.Tensor):
                results.append(("input.total_norm", result))
            self._recorder.guarded(self._end, call, results)
        return result

    def _begin(self, name: str, inputs: Slots, ending: str, kind: str) -> Call:
        call = Call(Api("Optimizer", name), inputs, ending=ending, kind=kind)
        call.rows = [self._calls.rows.read(slot, tensor) for slot, tensor in inputs]
        call.columns = self._calls.place() | {"phase": "clip" if ending == "clip" else "optimizer"}
        return call

    def _end(self, call: Call, results: Slots) -> None:
        self._calls.number(call)
        seq: int = call.columns["seq"]
        made: list[Row] = []
        for slot, tensor in results:
            slot = "output." + slot.partition(".")[2]
            made.append(self._calls.rows.made(slot, tensor, seq, fresh=True))
        self._calls.write(call.columns, [*call.rows, *call.inner, *made], call, None)


def _state(optimizer: Optimizer) -> Slots:
    """Return the gradients and the parameters that an update reads."""
    weights = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    gradients = [(f"input.grad.{n}", p.grad) for n, p in enumerate(weights) if p.grad is not None]
    return gradients + [(f"input.param.{n}", p) for n, p in enumerate(weights)]
