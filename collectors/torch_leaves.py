"""Records what is added to the gradient of each leaf: parameters, and inputs that require one."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from .recorder import Recorder
from .torch_names import Names
from .torch_replicas import Replicas
from .torch_rows import Row, Rows

GRADIENTS = "crossrank.gradients"
"""Key in a node's metadata: the gradients that came in so far, by the number of its input."""

Incoming = Callable[[str, torch.Tensor, "list[Row]"], Row]
"""Gives the row of a gradient that is read, made of what earlier calls handed on."""


class Leaves:
    """Hooks leaves as calls read them.

    Args:
        recorder: takes the rows.
        rows: makes them.
        names: numbers the calls.
        replicas: is told of every gradient of a parameter.
        incoming: makes the row of a gradient that comes in.
    """

    def __init__(
        self,
        recorder: Recorder,
        rows: Rows,
        names: Names,
        replicas: Replicas,
        incoming: Incoming,
    ) -> None:
        self._recorder, self._rows, self._names = recorder, rows, names
        self._replicas, self._incoming = replicas, incoming
        self._handles: dict[int, list[Any]] = {}

    def stop(self) -> None:
        """Take the hooks off the leaves; those on nodes go with the graph."""
        for handles in self._handles.values():
            for handle in handles[1:]:
                handle.remove()
        self._handles.clear()

    def watch(self, leaf: torch.Tensor) -> None:
        """Record what is added to the gradient of a leaf."""
        if id(leaf) in self._handles or not leaf.is_leaf or type(leaf).__name__ == "DTensor":
            return
        key, came = id(leaf), list[Row]()
        known = weakref.ref(leaf, lambda _: self._handles.pop(key, None))

        def before(gradient: torch.Tensor) -> None:
            self._recorder.guarded(self._before_leaf, known, gradient, came)

        def after(tensor: torch.Tensor) -> None:
            self._recorder.guarded(self._after_leaf, tensor, came)

        self._handles[key] = [
            known,  # alive as long as the hooks, to be told of the end
            leaf.register_hook(before),
            leaf.register_post_accumulate_grad_hook(after),
        ]

    def _before_leaf(self, known: Any, gradient: torch.Tensor, came: list[Row]) -> None:
        leaf = known()
        parts = leaf_node(leaf).metadata.pop(GRADIENTS, {}).get(0, [])
        came[:] = [self._incoming("input.0", gradient, parts)]
        if leaf.grad is not None:
            came.append(self._rows.read("input.grad", leaf.grad))

    def _after_leaf(self, leaf: torch.Tensor, came: list[Row]) -> None:
        if leaf.grad is None:
            return
        changed = self._rows.read("inner.grad", leaf.grad)  # by a hook of the user's
        if changed["producer_seq"] not in {None, *(row["producer_seq"] for row in came)}:
            came.append(changed)
        seq = self._recorder.next_seq()
        name, number = self._names.next("Gradient", "accumulate", "backward")
        made = self._rows.made("output.0", leaf.grad, seq, fresh=True)
        columns = {
            "seq": seq, "name": name, "api": "accumulate", "call_index": number,
            "phase": "backward", "kind": "compute", "state": "ok",
        }  # fmt: skip
        self._recorder.add(columns, [row | {"seq": seq} for row in [*came, made]])
        self._replicas.added(leaf, made | {"producer_seq": seq, "producer_slot": "output.0"})
        came.clear()


def leaf_node(leaf: Any) -> Any:
    """Return the node that adds to a leaf's gradient."""
    return torch.autograd.graph.get_gradient_edge(leaf).node
