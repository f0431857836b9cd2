"""The seam between what is computed and where: in this process, in others beside it, on Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from .errors import InternalError, UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Failure:
    """A task that did not come back with a result, and why.

    Args:
        reason: what happened.
        ours: it is a mistake of this program; what the task was given is not to blame.
    """

    reason: str
    ours: bool = False


MISTAKES = (
    InternalError, AssertionError, AttributeError, ImportError, LookupError, NameError,
    NotImplementedError, RecursionError, TypeError, ZeroDivisionError,
)  # fmt: skip
"""What only code does wrong: a file that is broken, cut or odd is told of by other errors."""


def failure_of(error: BaseException) -> Failure:
    """Return what an error in a task says, and whether it is a mistake of ours."""
    text = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    return Failure(text, ours=isinstance(error, MISTAKES))


def reason_of(failure: Failure) -> str:
    """Return why a task failed where that is not ours.

    Raises:
        InternalError: it is.
    """
    if failure.ours:
        raise InternalError(failure.reason)
    return failure.reason


def anywhere(item: object) -> str:
    """Return no node: any will do."""
    return ""


class Engine(Protocol):
    """Runs one function over many items.

    Args:
        name: of the kind of engine.
        workers: tasks that are under way at the same time.
    """

    name: str
    workers: int

    @property
    def placed(self) -> Mapping[str, int]:
        """Return node -> tasks that it did; empty when there is but one node."""

    def map(
        self,
        task: Callable[[Item], Result],
        items: Iterable[Item],
        where: Callable[[Item], str] = anywhere,
    ) -> Iterator[tuple[Item, Result | Failure]]:
        """Yield each item with its result, as they are done; few are under way at a time.

        Args:
            task: a function at the top level of a module.
            items: picklable; their text names a task in logs.
            where: the node that an item must be done on, as `everywhere` names it, or nothing.
        """

    def everywhere(
        self, task: Callable[[Item], Result], item: Item
    ) -> Iterator[tuple[str, Result | Failure]]:
        """Yield every node with what the task gives there."""

    def close(self) -> None:
        """Give back what the engine holds."""


def on_ray(kind: str, address: str | None) -> bool:
    """Tell whether Ray is meant: asked for, or auto inside a Ray job or with an address."""
    in_job = "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ
    return kind == "ray" or (kind == "auto" and (in_job or bool(address)))


def ray_engine(workers: int, address: str | None) -> Engine:
    """Return an engine on a Ray cluster.

    Args:
        workers: tasks under way at most; 0: as many as the cluster can take.
        address: of the cluster; default: the one of the job, or a new one on this machine.
    """
    try:
        from .engine_ray import RayEngine
    except ImportError:
        raise UsageError(
            "--engine ray needs Ray, which is not installed; pip install 'crossrank[pipeline]'"
        ) from None
    return RayEngine(workers, address)
