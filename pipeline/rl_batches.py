"""Samples of a rank: who they are, and what was saved of them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from .readers.rollouts import Value
from .readers.rollouts.names import IDENTITY, LOG_PROBS, TEXT_KEYS, TOKENS
from .readers.rollouts.part import ragged_value
from .rl_layout import Array, Layout, frequent

COUNTS = (
    *("uid", "response_mask", "response_ids", "prompt_ids", "attention_mask"),
    *(*TEXT_KEYS, *LOG_PROBS, "reward"),
)
"""Keys whose first dimension is the number of samples; the first that is there tells, and whoever
reads a part reads that one."""


@dataclass(frozen=True)
class Batch:
    """What one rank saved of one step in one micro step.

    Args:
        micro: micro step.
        size: number of samples; 0 when nothing tells.
        samples: key -> value with a row a sample.
        others: (key, entry) -> value that is no list of samples.
        layout: where in `samples` tokens stand; one object for batches that agree.
    """

    micro: int
    size: int
    samples: Mapping[str, Value]
    others: Mapping[tuple[str, str], Value]
    layout: Layout


def batches(values: Iterable[Value]) -> list[Batch]:
    """Return the batches of one part, by micro step."""
    found: dict[int, list[Value]] = defaultdict(list)
    for value in values:
        found[value.micro].append(value)
    return [_batch(micro, some) for micro, some in sorted(found.items())]


def _batch(micro: int, values: list[Value]) -> Batch:
    named: dict[str, list[Value]] = defaultdict(list)
    for value in values:
        named[value.key].append(value)
    joined = {key: _joined(key, some) for key, some in named.items()}
    size = _size({key: some[0].shape for key, some in joined.items()})
    samples, others = {}, {}
    for key, some in joined.items():
        for value in some:
            if size and not value.entry and value.shape[:1] == (size,):
                samples[key] = value
            else:
                others[key, value.entry] = value
    return Batch(micro, size, samples, others, Layout(size, samples))


def _size(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return the number of samples: of a key that has a row each, else what all agree on."""
    for key in COUNTS:
        if shapes.get(key):
            return shapes[key][0]
    lengths = {shape[0] for shape in shapes.values() if shape}
    return lengths.pop() if len(lengths) == 1 else 0


def _joined(key: str, values: list[Value]) -> list[Value]:
    """Return a list of rows, one a sample, as one ragged value."""
    rows = all(value.entry.isdecimal() and len(value.shape) == 1 for value in values)
    if key not in (*IDENTITY, *TOKENS) or not rows:
        return values
    ordered = sorted(values, key=lambda value: int(value.entry))
    return [ragged_value(values[0].micro, key, [v.array for v in ordered], values[0].dtype)]


def trusted_pad(some: Iterable[Batch]) -> int | None:
    """Return the id that fills rows up, by the batches whose attention fits it; None: unknown."""
    layouts = [batch.layout for batch in some]
    fitting = [one.pad for one in layouts if one.prompt_fits is not None and one.prompt_fits.all()]
    return frequent(np.array([pad for pad in fitting if pad is not None], dtype=np.int64))


def digests(ids: Array, real: Array) -> Array:
    """Return a number for each row that depends on its real ids alone, not on where they stand."""
    place = np.cumsum(real, axis=1).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = mix(ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + place)
        return mix(
            np.where(real, mixed, np.uint64(0)).sum(axis=1, dtype=np.uint64)
            + real.sum(1).astype(np.uint64)
        )


def text_digests(texts: Array) -> Array:
    """Return a number for each text."""
    return np.array(
        [
            int.from_bytes(hashlib.blake2b(t.encode(), digest_size=8).digest(), "little")
            for t in texts
        ],
        dtype=np.uint64,
    )


def mix(numbers: Array) -> Array:
    """Return numbers whose bits all depend on all bits (splitmix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = numbers.astype(np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Array = z ^ (z >> np.uint64(31))
        return mixed
