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

from .engine import Failure, Item, Result

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

    def map(
        self, task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result | Failure]]:
        """Yield each item with its result, as they are done."""
        remote = ray.remote(_runner(str(ROOMS)))
        waiting = iter(items)
        running: dict[ray.ObjectRef[Any], Item] = {}
        while True:
            for item in islice(waiting, self.workers - len(running)):
                name = f"{task.__name__}[{item}]"
                here = remote.options(name=name, num_cpus=1, max_retries=3)
                running[here.remote(pickle.dumps((task, item)))] = item
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            for ref in done:
                yield running.pop(ref), self._result(ref)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._started:
            ray.shutdown()

    def _result(self, ref: ray.ObjectRef[Any]) -> Any:
        try:
            node, result = ray.get(ref)
        except RayTaskError as error:
            if isinstance(error.cause, CrossrankError):
                raise error.cause from None
            return Failure(f"{type(error.cause).__name__}: {error.cause}")
        except ray.exceptions.RayError as error:
            return Failure(f"{type(error).__name__}: {error}")
        self.placed[node] += 1
        return result


def _wait_for_shared_folders() -> None:
    """Wait until nodes on one machine have each unpacked the job's working directory.

    They unpack it into the same folder, each anew, from under whoever already works in it.
    """
    nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
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
