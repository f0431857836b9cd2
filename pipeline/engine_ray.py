"""Runs tasks on a Ray cluster; the only file that imports ray."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayTaskError

from collectors.errors import CrossrankError

from .engine import Failure, Item, Result

ROOMS = Path(__file__).resolve().parent.parent
"""The folder that holds pipeline/, analyzers/, collectors/ and sql/."""


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
            ray.init(
                address=address,
                runtime_env=_runtime_env(),
                logging_level=logging.WARNING,
                log_to_driver=True,
            )
        cluster: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        self.workers = workers or 2 * int(cluster.get("CPU", 1))

    def map(
        self, task: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result | Failure]]:
        """Yield each item with its result, as they are done."""
        remote = ray.remote(task)
        waiting = iter(items)
        running: dict[ray.ObjectRef[Any], Item] = {}
        while True:
            for item in islice(waiting, self.workers - len(running)):
                name = f"{task.__name__}[{item}]"
                running[remote.options(name=name, num_cpus=1, max_retries=3).remote(item)] = item
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1)
            for ref in done:
                yield running.pop(ref), _result(ref)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        if self._started:
            ray.shutdown()


def _runtime_env() -> dict[str, object]:
    """Make workers import the rooms of this process, before any package of the same name."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {"env_vars": {"PYTHONPATH": os.pathsep.join([str(ROOMS), *others])}}


def _result(ref: ray.ObjectRef[Any]) -> Any:
    try:
        return ray.get(ref)
    except RayTaskError as error:
        if isinstance(error.cause, CrossrankError):
            raise error.cause from None
        return Failure(f"{type(error.cause).__name__}: {error.cause}")
    except ray.exceptions.RayError as error:
        return Failure(f"{type(error).__name__}: {error}")
