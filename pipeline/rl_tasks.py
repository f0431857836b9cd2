"""Runs the tasks of `rl`, and gives what they bring in order; needs no database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from .engine import Engine, Failure, reason_of
from .errors import DumpError
from .rl_collection import Collection
from .rl_index import index_parts, index_tasks
from .rl_measure import MeasureTask, measure
from .rl_nodes import fetched, node_of
from .rl_shown import ShowTask, show_sample

Tables = Mapping[str, pa.Table]
"""Table -> rows that one task brings."""


@dataclass(frozen=True)
class Sides:
    """What is compared.

    Args:
        a: one side.
        b: the other; the same as `a` when two keys of one run are compared.
        keys: of A and of B, when they are given; else None.
    """

    a: Collection
    b: Collection
    keys: tuple[str, str] | None = None


def list_samples(sides: Sides, engine: Engine) -> Iterator[Tables]:
    """Yield samples and keys of both sides, part by part."""
    tasks = [
        *index_tasks("a", sides.a.parts, engine.workers),
        *index_tasks("b", sides.b.parts, engine.workers),
    ]
    return _in_order(engine, index_parts, tasks)


def measure_steps(tasks: Sequence[MeasureTask], engine: Engine) -> Iterator[Tables]:
    """Yield how the samples of each task differ."""
    return _in_order(engine, measure, tasks)


def show_samples(tasks: Sequence[ShowTask], engine: Engine) -> Iterator[Tables]:
    """Yield the tokens of each sample."""
    return _in_order(engine, show_sample, tasks)


def begun(results: Iterator[Tables], beside: Executor) -> Iterator[Tables]:
    """Return the same; the tasks of the first are sent at once, not when they are asked for."""
    first = beside.submit(next, results, None)

    def all_of_them() -> Iterator[Tables]:
        result = first.result()
        if result is not None:
            yield result
            yield from results

    return all_of_them()


def _in_order(
    engine: Engine, work: Callable[[Any], Tables], items: Sequence[Any]
) -> Iterator[Tables]:
    """Yield what each item gives, in their order, whenever they are done.

    Raises:
        DumpError: a part cannot be read.
    """
    sent: list[Any] = []
    done: dict[int, Tables] = {}

    def ready() -> Iterator[Any]:
        for item in items:
            files = fetched(item.parts, engine)
            sent.append(replace(item, fetched=files) if files else item)
            yield sent[-1]

    given = 0
    for item, result in engine.map(work, ready(), where=lambda item: node_of(item.parts)):
        if isinstance(result, Failure):
            raise DumpError(f"{item} could not be compared: {reason_of(result)}")
        done[id(item)] = result
        while given < len(sent) and id(sent[given]) in done:
            yield done.pop(id(sent[given]))
            sent[given] = None  # its files may be large
            given += 1
