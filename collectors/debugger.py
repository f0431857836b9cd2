"""What a training script holds in its hand: start, stop, step."""

from __future__ import annotations

import os
import sys
import types
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .config import Config, read_config
from .parts import RunInfo
from .recorder import Recorder
from .torch_calls import Calls
from .torch_hooks import Hooks, Unseen
from .torch_lineage import Lineage
from .torch_modules import ModulePaths
from .torch_rows import Rows, finish
from .torch_tensors import local

OWNER = "crossrank's collector of this process"
"""Stands in sys.modules while one records: `collectors` and `crossrank.collectors` are two modules,
and both may be imported."""


class PrecisionDebugger:
    """Collects the calls of this rank, step by step.

    debugger = PrecisionDebugger(config_path="config.json")
    for batch in loader:
        debugger.start(model)
        train_step(batch)
        debugger.stop()
        debugger.step()

    Args:
        config_path: the incumbent's config.json; the other arguments stand above it.
        task: statistics.
        dump_path: folder of the dump.
        level: L1.
        step: only these steps.
        rank: only these ranks.

    Raises:
        ConfigError: the configuration cannot be followed.
    """

    def __init__(
        self,
        config_path: str | Path | None = None,
        task: str | None = None,
        dump_path: str | Path | None = None,
        level: str | None = None,
        step: Any = None,
        rank: Any = None,
    ) -> None:
        self._config: Config = read_config(
            config_path, task=task, dump_path=dump_path, level=level, step=step, rank=rank
        )
        self._step = 0
        self._recorder: Recorder | None = None
        self._calls: Calls | None = None
        self._hooks: Hooks | None = None

    def start(self, model: nn.Module | Iterable[nn.Module] | None = None) -> None:
        """Record from here on.

        Args:
            model: whose modules are named in the record; several as a list.
        """
        rank = _rank()
        if self._hooks or not self._config.wants(rank, self._step):
            return
        if OWNER in sys.modules:
            warnings.warn(
                "another PrecisionDebugger records already; this one does not", stacklevel=2
            )
            return
        if self._calls is None:
            self._recorder = Recorder(
                self._config.dump_path,
                rank,
                _run(self._config),
                finish,
                Unseen,
            )
            self._calls = Calls(self._recorder, Rows(Lineage()), ModulePaths())
        models = [model] if isinstance(model, nn.Module) else list(model or [])
        self._calls.modules.show(models)
        for model in models:
            for tensor in (*model.parameters(), *model.buffers()):
                self._calls.rows.lineage.is_weight(local(tensor))
        assert self._recorder is not None
        self._recorder.begin_step(self._step)
        sys.modules[OWNER] = types.ModuleType(OWNER)
        self._hooks = Hooks(self._calls)
        self._hooks.start()

    def stop(self) -> None:
        """Record no longer; the step stays open for another `start`."""
        if self._hooks and self._recorder:
            self._hooks.stop()
            self._hooks = None
            self._recorder.on = False
            sys.modules.pop(OWNER, None)

    def step(self) -> None:
        """End the step: what follows belongs to the next one."""
        recording = self._hooks is not None
        self.stop()
        if self._recorder and self._calls:
            self._recorder.on = not self._recorder.failures
            self._recorder.guarded(self._calls.comm.close_all)
            self._recorder.end_step()
            self._calls.names.clear()
            self._calls.modules.micro_step = None
        self._step += 1
        if recording and self._config.wants(_rank(), self._step):
            self.start()


def _rank() -> int:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK", "0"))


def _run(config: Config) -> RunInfo:
    initialized = torch.distributed.is_available() and torch.distributed.is_initialized()
    alone = int(os.environ.get("WORLD_SIZE", "1"))
    world = torch.distributed.get_world_size() if initialized else alone
    place = ":".join(os.environ.get(key, "") for key in ("MASTER_ADDR", "MASTER_PORT"))
    return RunInfo(
        run_id=os.environ.get("TORCHELASTIC_RUN_ID") or place,
        framework="pytorch",
        versions={"torch": torch.__version__, "python": sys.version.split()[0]},
        world_size=world,
        config=dict(config.raw or {}),
    )
