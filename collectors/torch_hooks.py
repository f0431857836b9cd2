"""Puts the collector into PyTorch and takes it out again, leaving every name as it was."""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable
from concurrent.futures import thread as pools
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode

from .torch_calls import Calls
from .torch_names import Api
from .torch_phases import Phases

FUNCTIONAL = (
    "all_reduce", "all_reduce_coalesced", "all_gather_tensor", "all_gather_into_tensor_coalesced",
    "all_gather_tensor_autograd", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced",
    "reduce_scatter_tensor_autograd", "all_to_all_single", "all_to_all_single_autograd",
    "broadcast", "permute_tensor", "wait_tensor",
)  # fmt: skip
"""Functional collectives, which DTensor calls from inside of other calls."""

CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


class Unseen:
    """A context in which nothing that watches PyTorch sees its calls: neither we nor others."""

    def __enter__(self) -> None:
        self._contexts: list[Any] = [torch._C.DisableTorchFunction()]
        if torch._C._len_torch_dispatch_stack():
            self._contexts.append(torch._C._DisableTorchDispatch())
        for context in self._contexts:
            context.__enter__()

    def __exit__(self, *error: object) -> None:
        for context in reversed(self._contexts):
            context.__exit__(*error)


class Hooks:
    """Everything that is replaced while calls are recorded.

    Args:
        calls: the calls of this process.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls, self._phases = calls, Phases(calls)
        self._replaced: list[tuple[Any, str, Any]] = []

    def start(self) -> None:
        """Record from now on, in this thread and in every one that starts later."""
        _push_below(self._calls.mode)
        self._calls.modules.start()
        self._phases.start()
        self._replace(threading.Thread, "_bootstrap_inner", self._with_mode)
        self._replace(pools._WorkItem, "run", self._with_mode)
        self._replace(torch.autograd.Function, "apply", self._function)
        self._replace(torch.UntypedStorage, "resize_", self._resize)
        # the function that they hand to a mode runs without it
        self._replace(torch.autograd, "_engine_run_backward", self._with_mode)
        for name in CLIPPING:
            for place in (torch.nn.utils, torch.nn.utils.clip_grad):
                self._replace(place, name, self._clip)
        if dist.is_available():
            self._replace(dist.Work, "wait", self._wait)
            self._replace(dist.ProcessGroup, "barrier", self._barrier)
            for name in filter(functools.partial(hasattr, funcol), FUNCTIONAL):
                self._replace(funcol, name, self._with_mode)
            for name in _unseen_collectives():
                for place in (dist, dist.distributed_c10d):
                    if hasattr(place, name):
                        self._replace(place, name, self._collective)

    def stop(self) -> None:
        """Put every name back."""
        for place, name, original in reversed(self._replaced):
            if original is None:
                delattr(place, name)
            else:
                setattr(place, name, original)
        self._replaced.clear()
        self._phases.stop()
        self._calls.modules.stop()
        self._calls.backward.leaves.stop()
        _remove(self._calls.mode)

    def _replace(self, place: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = vars(place).get(name)  # as it stands there: a classmethod stays one
        self._replaced.append((place, name, original))
        setattr(place, name, make(getattr(place, name) if original is None else original))

    def _with_mode(self, original: Callable[..., Any]) -> Callable[..., Any]:
        mode = self._calls.mode

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not self._calls.recorder.on or mode in _get_current_function_mode_stack():
                return original(*args, **kwargs)
            with mode:
                return original(*args, **kwargs)

        return run

    def _function(self, original: Any) -> Any:
        calls = self._calls

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            inner = functools.partial(original.__func__, cls)
            if not calls.recorder.on or calls.recorder.busy or calls.around():
                return inner(*args, **kwargs)
            call = calls.recorder.guarded(
                calls.begin, Api("Function", cls.__name__), cls, args, kwargs
            )
            thread, outer = calls.recorder.thread, calls.outer()
            if call:
                call.columns["seq"] = thread.outer = calls.recorder.next_seq()
            try:
                result = inner(*args, **kwargs)
            except BaseException:
                if call:
                    calls.recorder.guarded(calls.raised, call)
                raise
            finally:
                thread.outer = outer
            if call:
                calls.recorder.guarded(calls.end, call, result, kwargs)
            return result

        return classmethod(apply)

    def _clip(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def clip(*args: Any, **kwargs: Any) -> Any:
            return self._phases.clip(original, args, kwargs)

        return clip

    def _wait(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            done = original(work, *args, **kwargs)
            self._calls.comm.waited(work)
            return done

        return wait

    def _barrier(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def barrier(group: Any, *args: Any, **kwargs: Any) -> Any:
            return original(group, *args, **kwargs)

        barrier.__module__ = "torch.distributed"
        return self._collective(barrier)

    def _resize(self, original: Callable[..., Any]) -> Callable[..., Any]:
        calls = self._calls

        def resize(storage: torch.UntypedStorage, *args: Any, **kwargs: Any) -> Any:
            result = original(storage, *args, **kwargs)
            calls.recorder.guarded(calls.rows.lineage.reallocated, storage)
            return result

        return resize

    def _collective(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            return self._calls.run(original, args, kwargs)

        return run


@functools.lru_cache(None)
def _unseen_collectives() -> list[str]:
    """Return the names in torch.distributed that communicate and that no mode is told of."""
    names = []
    for name, func in vars(dist.distributed_c10d).items():
        if type(func) is not types.FunctionType or name.startswith(
            ("get_", "is_", "new_", "init_", "__")
        ):
            continue
        if name not in dist.distributed_c10d.__all__:
            continue
        parameters = inspect.signature(func).parameters
        code = inspect.unwrap(func).__code__
        if "group" in parameters and "has_torch_function" not in code.co_names:
            names.append(name)
    return [name for name in names if name not in NOT_COMMUNICATION]


NOT_COMMUNICATION = {
    "barrier", "destroy_process_group", "split_group", "shrink_group", "batch_isend_irecv",
    "all_gather_into_tensor", "_all_gather_base", "reduce_scatter_tensor", "_reduce_scatter_base",
}  # fmt: skip
"""They make and end groups, or do nothing but call others that are seen, as barrier the group's."""


def _push_below(mode: Any) -> None:
    """Put a mode under all others: whoever leaves one of those must not take ours for it.

    But for that of torch.set_default_device, which insists on being the lowest.
    """
    modes = [_pop_mode() for _ in _get_current_function_mode_stack()][::-1]
    default = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    lowest = [one for one in modes[:1] if one is default]
    for one in (*lowest, mode, *modes[len(lowest) :]):
        _push_mode(one)


def _remove(mode: Any) -> None:
    """Take a mode out of this thread's stack, wherever it stands."""
    if mode not in _get_current_function_mode_stack():
        return
    above = []
    while (one := _pop_mode()) is not mode:
        above.append(one)
    for one in reversed(above):
        _push_mode(one)
