"""Which samples and which keys a part holds: small tables, made where the part lies."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from .readers.rollouts import Part, Value, part_keys, read_part
from .readers.rollouts.names import TEXT_KEYS, identity
from .rl_batches import Batch, batches, digests, text_digests
from .rl_layout import Array, count
from .rl_tables import KEYS, SAMPLES, Rows


@dataclass(frozen=True)
class IndexTask:
    """Parts of one side, to be listed."""

    side: str
    numbered: tuple[tuple[int, Part], ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return what it reads; all lie on one node."""
        return tuple(part for _, part in self.numbered)

    def __str__(self) -> str:
        return f"{self.side}, {len(self.parts)} parts"


def index_tasks(side: str, parts: Iterable[Part], workers: int) -> list[IndexTask]:
    """Return the parts of one side, dealt out to workers."""
    numbered = sorted(enumerate(parts), key=lambda one: (one[1].node, one[0]))
    share = max(1, -(-len(numbered) // (2 * workers)))
    return [
        IndexTask(side, tuple(some[start : start + share]))
        for _, group in groupby(numbered, key=lambda one: one[1].node)
        for some in [list(group)]
        for start in range(0, len(some), share)
    ]


def index_parts(task: IndexTask) -> dict[str, pa.Table]:
    """Return table -> rows of some parts; runs in a worker."""
    samples, keys = Rows(SAMPLES), Rows(KEYS)
    for number, part in task.numbered:
        known = sorted(part_keys(part))
        place = {"side": task.side, "part": number, "step": part.step, "rank": part.rank}
        keys.add({**place, "key": known})
        for batch in batches(read_part(part, _needed(set(known)) or None)):
            if batch.size:
                samples.add(_samples(place, batch))
    return {"samples": samples.table(), "keys": keys.table()}


def _needed(known: set[str]) -> set[str]:
    """Return which keys tell samples apart: token ids only where ids and numbers do not."""
    if {"uid", "sample_index"} <= known:
        return {"uid", "sample_index", "response_mask", *TEXT_KEYS} & known
    if known & {"uid", "prompt_ids", *TEXT_KEYS}:
        return identity(known) | (set(TEXT_KEYS) & known)
    return {"response_mask"} & known or {"response_ids"} & known


def _samples(place: dict[str, Any], batch: Batch) -> dict[str, Any]:
    number, layout = _one_each(batch.samples.get("sample_index")), batch.layout
    prompts, responses, mask = layout.prompts, layout.responses, layout.mask
    content = {
        **place,
        "micro": batch.micro,
        "place": np.arange(batch.size),
        "uid": _names(batch.samples.get("uid")),
        "sample": None if number is None or number.dtype == object else number.astype(np.int64),
        "prompt": None if prompts is None else digests(*prompts),
        "response": None if responses is None else digests(responses, layout.real),
        "tokens": None if responses is None else layout.lengths,
        "counted": None if mask is None else count(mask),
    }
    for key in TEXT_KEYS:
        value = batch.samples.get(key)
        content[key] = None if value is None else text_digests(value.array)
    return content


def _one_each(value: Value | None) -> Array | None:
    """Return the one element that each sample has; None where it has none, or more."""
    if value is None or value.lengths is not None or math.prod(value.shape[1:]) != 1:
        return None
    array: Array = value.array.reshape(-1)
    return array


def _names(value: Value | None) -> list[str] | None:
    """Return ids as text, so that 10.0, 10 and "10" are one."""
    array = _one_each(value)
    return None if array is None else [name(one) for one in array.tolist()]


def name(one: object) -> str:
    """Return one id as text."""
    if isinstance(one, float) and one.is_integer():
        return str(int(one))
    return str(one)
