"""Records the backward of each call: the gradient that came in, and what went on to its inputs.

Hooks on the nodes of autograd see gradients and change nothing: not the graph, not the order in
which it adds them up. What a call's nodes hand on is remembered in the metadata of the node it goes
to, so the next record knows exactly where its gradient came from; where several come together, the
engine's own addition is recorded as a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from .recorder import Recorder
from .torch_leaves import GRADIENTS, Leaves, leaf_node
from .torch_names import Names
from .torch_replicas import Replicas
from .torch_rows import Row, Rows
from .torch_tensors import Slots

OWNER, OWN = "crossrank.owner", "crossrank.own"
"""Keys in a node's metadata: the call it belongs to; inputs with a gradient of its own nodes."""

MOST_NODES = 64
"""Nodes of one call that are followed."""


@dataclass
class Owner:
    """The call that a few nodes belong to, and what its backward showed so far.

    Args:
        columns: of the forward call.
        nodes: how many nodes it has.
        seq: of the backward call under way; None: none is.
        rows: of it, so far.
        done: nodes that ran.
        others: gradients that go to what was no input.
    """

    columns: dict[str, Any]
    nodes: int = 0
    seq: int | None = None
    rows: list[Row] = field(default_factory=list)
    done: int = 0
    others: int = 0


class Backward:
    """Hooks nodes as calls make them.

    Args:
        recorder: takes the rows.
        rows: makes them.
        names: numbers calls that have no forward call.
        replicas: is told of every gradient of a parameter, and when a pass is over.
    """

    def __init__(self, recorder: Recorder, rows: Rows, names: Names, replicas: Replicas) -> None:
        self._recorder, self._rows, self._names = recorder, rows, names
        self._replicas = replicas
        self._under_way: dict[int, Owner] = {}
        self._watched_pass = -1
        self.leaves = Leaves(recorder, rows, names, replicas, self.incoming)
        self._handed_on: set[int] = set()

    def edge_of(self, tensor: torch.Tensor) -> tuple[Any, int] | None:
        """Return the node a tensor's gradient goes to, and which of its inputs that is.

        None for a view that was made without gradients: it has no node, and to ask may raise.
        """
        try:
            if tensor.grad_fn is not None:
                return tensor.grad_fn, tensor.output_nr
            node = leaf_node(tensor)
        except (RuntimeError, AssertionError):
            return None
        self.leaves.watch(tensor)
        return node, 0

    def attach(
        self, columns: dict[str, Any], results: Slots, edges: Sequence[tuple[str, Any, int]]
    ) -> None:
        """Hook the nodes that a call made."""
        if not torch.is_grad_enabled():  # it made none, and to ask a view for its node may raise
            return
        owner, free = Owner(columns), list(edges)
        ends = [node for _, node, _ in edges]
        places: dict[Any, dict[int, str]] = {}
        waiting: list[Any] = []
        for slot, tensor in results:
            if tensor.requires_grad and tensor.grad_fn is not None:
                place = slot.partition(".")[2]
                places.setdefault(tensor.grad_fn, {})[tensor.output_nr] = f"input.{place}"
                waiting.append(tensor.grad_fn)
        while waiting and owner.nodes < MOST_NODES:
            node = waiting.pop()
            if OWNER in node.metadata or node in ends or _is_leaf(node):
                continue
            node.metadata[OWNER] = owner
            owner.nodes += 1
            targets = [self._target(following, owner, free) for following in node.next_functions]
            waiting += [following for following, _ in node.next_functions if following is not None]
            self._hook(node, owner, places.get(node, {}), targets)

    def _target(
        self, following: tuple[Any, int], owner: Owner, free: list[tuple[str, Any, int]]
    ) -> tuple[dict[str, Any], int, str] | None:
        """Return where a gradient goes: the node's metadata, its input's number, our slot.

        `free` holds the inputs whose gradient has no place yet: one tensor may be read twice.
        """
        node, number = following
        if node is None:
            return None
        for edge in free:
            slot, end, place = edge
            if end == node and place == number:
                free.remove(edge)
                return node.metadata, number, "output." + slot.partition(".")[2]
        if _is_leaf(node) or node.metadata.get(OWNER, owner) is not owner:
            owner.others += 1
            return node.metadata, number, f"output.{node.name()}.{owner.others}"
        return node.metadata, number, ""

    def _hook(
        self,
        node: Any,
        owner: Owner,
        places: dict[int, str],
        targets: list[tuple[dict[str, Any], int, str] | None],
    ) -> None:
        metadata = node.metadata

        def came_in(gradients: Sequence[torch.Tensor | None]) -> None:
            self._recorder.guarded(self._came_in, owner, metadata, places, gradients)

        def went_on(gradients: Sequence[torch.Tensor | None], _: Any) -> None:
            self._recorder.guarded(self._went_on, owner, targets, gradients)

        node.register_prehook(came_in)
        node.register_hook(went_on)

    def _came_in(
        self,
        owner: Owner,
        metadata: dict[str, Any],
        places: dict[int, str],
        gradients: Sequence[torch.Tensor | None],
    ) -> None:
        known, own = metadata.pop(GRADIENTS, {}), metadata.pop(OWN, set())
        for number, gradient in enumerate(gradients):
            # what a view changed in its base has the base's gradient come in, not the view's
            place = places.get(number, f"input.base.{number}" if number in known else "")
            if number in own:  # a sum of the call's own and of what came from outside
                parts = enumerate(known.get(number, []))
                owner.rows += [part | {"slot": f"{place}.{n}"} for n, part in parts]
            elif gradient is not None and place:
                owner.rows.append(self.incoming(place, gradient, known.get(number, [])))

    def incoming(self, slot: str, gradient: torch.Tensor, parts: list[Row]) -> Row:
        """Return the row of a gradient that a call reads, made of what earlier calls handed on."""
        if len(parts) > 1:
            return self._sum(slot, gradient, parts)
        if not parts:
            return self._rows.read(slot, gradient)
        made = self._rows.lineage.value_of(gradient)
        changed = made.id not in self._handed_on and made.order > parts[0]["value_id"]
        if made.seq is not None and (changed or parts[0]["tensor"] != gradient._cdata):
            return self._rows.read(slot, gradient)  # a hook of the user's put another in its place
        row = self._rows.seen(slot, gradient, "input", "value")
        origin = {key: parts[0][key] for key in ("value_id", "producer_seq", "producer_slot")}
        return row | origin

    def _sum(self, slot: str, gradient: torch.Tensor, parts: list[Row]) -> Row:
        """Record the engine's addition of gradients; return the row of who reads the sum."""
        seq = self._recorder.next_seq()
        name, number = self._names.next("Gradient", "add", "backward")
        reads = [part | {"slot": f"input.{place}", "seq": seq} for place, part in enumerate(parts)]
        made = self._rows.made("output.0", gradient, seq, fresh=True) | {"seq": seq}
        columns = {
            "seq": seq, "name": name, "api": "add", "call_index": number, "phase": "backward",
            "kind": "compute", "state": "ok",
        }  # fmt: skip
        self._recorder.add(columns, [*reads, made])
        row = made | {"slot": slot, "direction": "input"}
        return row | {"producer_seq": seq, "producer_slot": "output.0"}

    def _went_on(
        self,
        owner: Owner,
        targets: list[tuple[dict[str, Any], int, str] | None],
        gradients: Sequence[torch.Tensor | None],
    ) -> None:
        if owner.seq is None:
            owner.seq = self._recorder.next_seq()
            self._under_way[id(owner)] = owner
            self._watch_pass()
        for target, gradient in zip(targets, gradients):
            if target is None or gradient is None:
                continue
            metadata, number, slot = target
            if not slot:
                metadata.setdefault(OWN, set()).add(number)
                continue
            self._hand_on(owner, gradient, slot, metadata.setdefault(GRADIENTS, {}), number)
        owner.done += 1
        if owner.done >= owner.nodes:
            self._finish(owner)

    def _hand_on(
        self,
        owner: Owner,
        gradient: torch.Tensor,
        slot: str,
        known: dict[int, list[Row]],
        number: int,
    ) -> None:
        seq = owner.seq or 0
        made_inside = self._rows.read(f"inner.{slot}", gradient)
        if made_inside["producer_seq"] not in (None, seq):  # by a function that runs in Python
            owner.rows.append(made_inside)
        row = self._rows.made(slot, gradient, seq, fresh=made_inside["producer_seq"] is None)
        owner.rows.append(row)
        part = row | {"direction": "input", "producer_seq": seq, "producer_slot": slot}
        part["tensor"] = gradient._cdata
        self._handed_on.add(row["value_id"])
        known.setdefault(number, []).append(part)

    def _finish(self, owner: Owner) -> None:
        self._under_way.pop(id(owner), None)
        seq, forward = owner.seq, owner.columns
        stem = forward["name"].rpartition(".")[0]
        kept = {key: forward[key] for key in ("api", "call_index", "kind", "module", "micro_step")}
        columns = kept | {
            "seq": seq,
            "name": f"{stem}.backward",
            "phase": "backward",
            "state": "ok",
        }
        self._recorder.add(columns, [row | {"seq": seq} for row in owner.rows])
        owner.seq, owner.rows, owner.done = None, [], 0

    def _watch_pass(self) -> None:
        """See to it that calls of which some nodes never run are written when the pass ends."""
        running = torch._C._current_graph_task_id()
        if running not in (-1, self._watched_pass):
            self._watched_pass = running
            engine = torch.autograd.Variable._execution_engine
            engine.queue_callback(lambda: self._recorder.guarded(self._finish_all))

    def _finish_all(self) -> None:
        self._watched_pass = -1
        self._handed_on.clear()
        for owner in list(self._under_way.values()):
            self._finish(owner)
        # behind those who wait for the end of the pass as we do: DistributedDataParallel
        engine = torch.autograd.Variable._execution_engine
        engine.queue_callback(lambda: self._recorder.guarded(self._replicas.after_pass))


def _is_leaf(node: Any) -> bool:
    return bool(node.name().endswith("AccumulateGrad"))
