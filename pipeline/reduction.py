"""Tree reduction: the answers of some batches become those of one, where the workers are.

A driver that took in the answers of thousands of batches one by one would open seven files of each,
and read the ranks of a group once for every batch that names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from .engine import Engine
from .lending import lent
from .settings import Limits, cpu_count, limits
from .work import Work

FAN_IN = 32
"""Batches that become one. Fewer need no merge: the driver reads them as fast."""


@dataclass(frozen=True)
class Merge:
    """Answers to put together in one task.

    Args:
        work: where they are, and where they go.
        keys: names of the batches, in order.
        questions: what they answer.
        limits: what the worker may use; default: the share of one CPU of where it runs.
    """

    work: Work
    keys: tuple[str, ...]
    questions: tuple[str, ...]
    limits: Limits | None

    def __str__(self) -> str:
        return f"{len(self.keys)} batches from {self.keys[0]}"

    @property
    def key(self) -> str:
        """Return the name of the batch that they become."""
        return hashlib.blake2b(repr(self.keys).encode(), digest_size=12).hexdigest()


def run_merge(merge: Merge) -> None:
    """Put the answers of some batches together; runs in a worker.

    Nothing is done where the worker does not see the driver's disk: the driver has them then.
    """
    work = merge.work
    if not work.is_here():
        return
    with lent(merge.limits or limits(cpu_count()), {}) as store:
        answers = {}
        for name in merge.questions:
            store.see(name, work.files(merge.keys, name))
            answers[name] = store.pack(name)
    work.put(merge.key, answers)


def reduced(
    engine: Engine,
    work: Work,
    keys: Sequence[str],
    questions: Sequence[str],
    limits: Limits | None,
) -> list[str]:
    """Return the names of few batches with the answers of many, level by level of a tree.

    Args:
        engine: merges; what it cannot merge stays as it is.
        work: where the answers are.
        keys: names of the batches, in order.
        questions: what they answer.
        limits: what a worker may use.
    """
    keys = list(keys)
    while len(keys) > FAN_IN:
        parts = [tuple(keys[start : start + FAN_IN]) for start in range(0, len(keys), FAN_IN)]
        merges = [Merge(work, part, tuple(questions), limits) for part in parts]
        for _ in engine.map(run_merge, [m for m in merges if not work.finished(m.key)]):
            pass
        level = [k for m in merges for k in ([m.key] if work.finished(m.key) else m.keys)]
        if len(level) == len(keys):
            break
        keys = level
    return keys
