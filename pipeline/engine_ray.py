"""Runs tasks on a Ray cluster; the only file that imports ray."""

from __future__ import annotations

import logging
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from collectors.errors import CrossrankError

from .engine import Failure, Item, Result, anywhere, failure_of

ROOMS = Path(__file__).resolve().parent.parent
"""The folder that holds pipeline/, analyzers/, collectors/ and sql/."""

FOLDER = Path.cwd()
"""The user's, by its path: it may be replaced by one of the same path."""


class RayEngine:
    """One Ray task an item, on whichever node has a free CPU; a bounded number under way.

    Args:
        workers: tasks under way at most; 0: twice the CPUs of the cluster.
        address: of the cluster; default: the job's own, or a new one on this machine.
    """

    name = "ray"

    def __init__(self, workers: int, address: str | None) -> None:
        self._started = not ray.is_initialized()
        if self._started:
            ray.init(address=address, logging_level=logging.WARNING, log_to_driver=True)
            _wait_for_shared_folders()
        cluster: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        self.workers = workers or 2 * int(cluster.get("CPU", 1))
        self.placed: Counter[str] = Counter()
        self._remote = ray.remote(_runner(str(ROOMS)))  # once: each goes to all nodes as code
        self._nodes = {_name(node): node["NodeID"] for node in _alive()}

    def map(
        self,
        task: Callable[[Item], Result],
        items: Iterable[Item],
        where: Callable[[Item], str] = anywhere,
    ) -> Iterator[tuple[Item, Result | Failure]]:
        """Yield each item with its result, as they are done."""
        waiting = iter(items)
        running: dict[ray.ObjectRef[Any], Item] = {}
        while True:
            for item in islice(waiting, self.workers - len(running)):
                running[self._send(task, item, where(item))] = item
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            for ref in done:
                item = running.pop(ref)
                yield item, self._result(ref, where(item))

    def everywhere(
        self, task: Callable[[Item], Result], item: Item
    ) -> Iterator[tuple[str, Result | Failure]]:
        """Yield every node with what the task gives there."""
        for node, ref in [(node, self._send(task, item, node, cpus=0)) for node in self._nodes]:
            yield node, self._result(ref, node, count=False)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._started:
            ray.shutdown()

    def _send(
        self, task: Callable[[Item], Result], item: Item, node: str, cpus: int = 1
    ) -> ray.ObjectRef[Any]:
        """Start a task on a node, or on any; tried again when its worker dies, not its node."""
        options: dict[str, Any] = {"num_cpus": cpus, "max_retries": 3}
        if node:
            place = NodeAffinitySchedulingStrategy(self._nodes[node], soft=False)
            options["scheduling_strategy"] = place
        here = self._remote.options(name=f"{task.__name__}[{item}]", **options)
        return here.remote(pickle.dumps((task, item)))

    def _result(self, ref: ray.ObjectRef[Any], place: str, *, count: bool = True) -> Any:
        try:
            node, result = ray.get(ref)
        except RayTaskError as error:
            if isinstance(error.cause, CrossrankError):
                raise error.cause from None
            return failure_of(error.cause)
        except ray.exceptions.RayError as error:
            text = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
            return Failure(f"on {place}: {text}" if place else text)
        self.placed[node] += count
        return result


def _alive() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]


def _name(node: dict[str, Any]) -> str:
    """Return a node's address, with enough of its id to tell nodes on one machine apart."""
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def _wait_for_shared_folders() -> None:
    """Wait until nodes on one machine have each unpacked the job's working directory.

    They unpack it into the same folder, each anew, from under whoever already works in it.
    """
    nodes = _alive()
    machines = Counter(node["NodeManagerAddress"] for node in nodes)
    ready = ray.remote(num_cpus=0)(lambda: None)
    shared = [node["NodeID"] for node in nodes if machines[node["NodeManagerAddress"]] > 1]
    strategies = [NodeAffinitySchedulingStrategy(node, soft=True) for node in shared]
    ray.get([ready.options(scheduling_strategy=strategy).remote() for strategy in strategies])
    os.chdir(FOLDER)


def _runner(rooms: str) -> Callable[[bytes], tuple[str, Any]]:
    """Return what a worker runs: a task with its item, and on which node that was.

    Ray sends an inner function as code, so it runs before anything of ours is imported there, and
    can put the rooms before packages of the same names in the folder the user works in. Where the
    rooms are not at the same place, Ray's working directory or PYTHONPATH must lead to them.
    """

    def run_here(task_and_item: bytes) -> tuple[str, Any]:
        if os.path.isdir(rooms) and sys.path[0] != rooms:
            sys.path.insert(0, rooms)
        task, item = pickle.loads(task_and_item)
        node = ray.get_runtime_context().get_node_id()
        address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        return f"{address} ({node[:8]})", task(item)

    return run_here
