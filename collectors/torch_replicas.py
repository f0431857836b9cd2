"""Records the gradient reduction of DistributedDataParallel, which runs inside of C++.

Its collectives are no calls of PyTorch, and a communication hook could change the last bits of what
it computes. But what goes in is known, each parameter's gradient as this rank added it up, and what
comes out stands in the gradients when the backward pass is over.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
import torch.distributed as dist

from .recorder import Recorder
from .torch_modules import ModulePaths
from .torch_names import Names
from .torch_rows import Row, Rows


class Replicas:
    """Watches the replicated models that ran forward.

    Args:
        recorder: takes the rows.
        rows: makes them.
        names: numbers the calls.
        modules: knows which models are replicated.
    """

    def __init__(self, recorder: Recorder, rows: Rows, names: Names, modules: ModulePaths) -> None:
        self._recorder, self._rows, self._names = recorder, rows, names
        self._modules = modules
        self._numbers: dict[str, int] = defaultdict(int)
        self._added: dict[int, Row] = {}

    def added(self, parameter: torch.Tensor, row: Row) -> None:
        """Remember the gradient that this rank added up for a parameter."""
        self._added[id(parameter)] = row

    def after_pass(self) -> None:
        """Record the reduction of every replicated model that took part in a backward pass."""
        for model in list(self._modules.replicated):
            if getattr(model, "require_backward_grad_sync", True):
                self._record(model)
        self._added.clear()

    def _record(self, model: Any) -> None:
        weights = [p for p in model.parameters() if id(p) in self._added and p.grad is not None]
        if not weights:
            return
        group = model.process_group
        key = f"{group.group_name} DistributedDataParallel"
        seq = self._recorder.next_seq()
        name, number = self._names.next("DistributedDataParallel", "all_reduce")
        rows: list[Row] = []
        for place, weight in enumerate(weights):
            slots = {"slot": f"input.0.{place}", "direction": "input", "seq": seq}
            rows.append(self._added[id(weight)] | slots)
        for place, weight in enumerate(weights):
            made = self._rows.made(f"output.0.{place}", weight.grad, seq, fresh=True)
            rows.append(made | {"seq": seq})
        columns = {
            "seq": seq, "name": name, "api": "all_reduce", "call_index": number, "kind": "comm",
            "phase": "backward", "state": "ok", "async": False, "reduce_op": "AVG",
            "group_id": key, "group_ranks": dist.get_process_group_ranks(group),
            "group_seq": self._numbers[key],
        }  # fmt: skip
        self._numbers[key] += 1
        self._recorder.add(columns, rows)
