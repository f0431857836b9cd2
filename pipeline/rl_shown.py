"""The worst samples, token by token, for the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from .readers.rollouts import Part, part_keys, read_part
from .readers.rollouts.names import identity
from .rl_batches import Batch, batches
from .rl_nodes import laid_out
from .rl_tables import SHOWN_TOKENS, Rows

PROMPT_END, WINDOW = 48, 192
"""Tokens that are shown: the last of the prompt, and of the response those around the worst."""


@dataclass(frozen=True)
class ShowTask:
    """One sample.

    Args:
        row: of rl/worst_samples.
        a: its part, micro step and row on side A.
        b: on side B.
        keys: of the log-prob on either side.
        fetched: files of parts that lie on several nodes.
    """

    row: Mapping[str, Any]
    a: tuple[Part, int, int]
    b: tuple[Part, int, int]
    keys: tuple[str, str]
    fetched: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return what it reads."""
        return self.a[0], self.b[0]

    def __str__(self) -> str:
        return f"sample {self.row['sample']} of step {self.row['step']}"


def show_sample(task: ShowTask) -> dict[str, pa.Table]:
    """Return the tokens of one sample; runs in a worker."""
    with laid_out(task.parts, task.fetched) as here:
        a = _batch((here[task.a[0]], *task.a[1:]), task.keys[0])
        b = _batch((here[task.b[0]], *task.b[1:]), task.keys[1])
    place = {"key": task.row["key"], "pair": task.row["pair"]}
    shown = Rows(SHOWN_TOKENS)
    if a.layout.prompts is not None:
        ids, real = (rows[task.a[2]] for rows in a.layout.prompts)
        prompt = ids[real]
        start = max(0, len(prompt) - PROMPT_END)
        content = {
            "in_prompt": True,
            "token": np.arange(start, len(prompt)),
            "id_a": prompt[start:],
        }
        shown.add({**place, **content})
    first = max(0, task.row["token"] - WINDOW // 2)
    sides = [_side(a, task.a[2], task.keys[0], first), _side(b, task.b[2], task.keys[1], first)]
    size = max(len(column) for side in sides for column in side.values())
    content = {"in_prompt": False, "token": np.arange(first, first + size)}
    for name, side in zip(("a", "b"), sides, strict=True):
        content |= {f"{column}_{name}": _filled(part, size) for column, part in side.items()}
    shown.add({**place, **content})
    return {"shown_tokens": shown.table()}


def show_tasks(
    rows: Iterable[Mapping[str, Any]],
    a: tuple[Part, ...],
    b: tuple[Part, ...],
    log_probs: Iterable[tuple[str, str, str]],
    most: int = 6,
) -> list[ShowTask]:
    """Return a task for each of the worst samples of each key."""
    keys = {name: (key_a, key_b) for name, key_a, key_b in log_probs}
    shown: dict[str, int] = {}
    tasks = []
    for row in rows:
        shown[row["key"]] = shown.get(row["key"], 0) + 1
        if shown[row["key"]] <= most and row["key"] in keys and row["max_abs"] > 0:
            here = a[row["a_part"]], row["a_micro"], row["a_place"]
            there = b[row["b_part"]], row["b_micro"], row["b_place"]
            tasks.append(ShowTask(row, here, there, keys[row["key"]]))
    return tasks


def _batch(where: tuple[Part, int, int], key: str) -> Batch:
    part, micro, _ = where
    found = batches(read_part(part, {*identity(part_keys(part)), key}))
    return next(batch for batch in found if batch.micro == micro)


def _side(batch: Batch, row: int, key: str, first: int) -> dict[str, Any]:
    """Return ids, log-probs and mask of the tokens that are shown, as long as they are real."""
    layout = batch.layout
    real = int(layout.lengths[row])
    window = slice(first, min(real, first + WINDOW))
    found: dict[str, Any] = {}
    if layout.responses is not None:
        found["id"] = layout.responses[row, window]
    found["log_prob"] = np.asarray(batch.samples[key].array[row, window], dtype=np.float64)
    if layout.mask is not None:
        found["counted"] = layout.mask[row, window]
    return found


def _filled(column: Any, size: int) -> Any:
    """Return a column with NULL at its end."""
    short = size - len(column)
    padded = np.concatenate([column, np.zeros(short, dtype=column.dtype)])
    return padded, np.arange(size) >= len(column)
