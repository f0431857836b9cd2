"""Which module of the model runs, in each thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)


class ModulePaths:
    """Follows the forward calls of all modules; names those of the models it was shown."""

    def __init__(self) -> None:
        self._paths: dict[int, str] = {}
        self._root: int | None = None
        self.micro_step: int | None = None
        """Forward passes of the first model that began in this step, less one; None before."""
        self.replicated: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        """Models of DistributedDataParallel that ran."""
        self._thread = threading.local()
        self._handles: list[Any] = []

    def show(self, models: Iterable[nn.Module]) -> None:
        """Learn the names of the modules of some models."""
        for model in models:
            self._root = self._root or id(model)
            for path, module in model.named_modules():
                self._paths[id(module)] = path

    def start(self) -> None:
        """Follow from now on."""
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        """Follow no longer."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._thread.running = [], []

    def current(self) -> str | None:
        """Return the path of the innermost module that runs; None outside, or without a name."""
        named = (p for m in reversed(self._running()) if (p := self._paths.get(id(m))))
        return next(named, None)

    def _running(self) -> list[nn.Module]:
        if not hasattr(self._thread, "running"):
            self._thread.running = []
        running: list[nn.Module] = self._thread.running
        return running

    def _enter(self, module: nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._running().append(module)
        if id(module) == self._root:
            self.micro_step = 0 if self.micro_step is None else self.micro_step + 1
        if isinstance(module, nn.parallel.DistributedDataParallel):
            self.replicated.add(module)

    def _leave(self, module: nn.Module, args: Any, result: Any) -> None:
        if torch.compiler.is_compiling():
            return
        running = self._running()
        while running and running.pop() is not module:
            pass
