"""Samples of a rank: who they are, which of their tokens are real, which count."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .readers.rollouts import Value
from .readers.rollouts.names import IDENTITY, LOG_PROBS, TEXT_KEYS, TOKENS
from .readers.rollouts.part import ragged_value

Array = npt.NDArray[Any]

COUNTS = ("uid", *IDENTITY[2:], *LOG_PROBS, *TEXT_KEYS, "reward")
"""Keys whose first dimension is the number of samples."""


@dataclass(frozen=True)
class Batch:
    """What one rank saved of one step in one micro step.

    Args:
        micro: micro step.
        size: number of samples; 0 when nothing tells.
        samples: key -> value with a row a sample.
        others: (key, entry) -> value that is no list of samples.
        known_pad: the id that fills rows up, where other batches told.
    """

    micro: int
    size: int
    samples: Mapping[str, Value]
    others: Mapping[tuple[str, str], Value]
    known_pad: int | None = None

    @cached_property
    def pad(self) -> int | None:
        """Return the id that fills rows up: the most frequent one where nothing is real.

        Responses tell first: whatever is wrong with the attention of a prompt, nothing is real
        behind the end.
        """
        if self.known_pad is not None:
            return self.known_pad
        for key in ("response_ids", "prompt_ids"):
            value, attention = self.samples.get(key), self._attention(key)
            if value is None or value.lengths is not None:
                continue
            if attention is not None:
                found = frequent(value.array[attention == 0])
            elif key == "response_ids" and "response_mask" in self.samples:
                found = frequent(value.array[_beyond(self._block("response_mask", value.shape[1]))])
            else:
                continue
            if found is not None:
                return found
        return None

    def _attention(self, key: str) -> Array | None:
        """Return the attention over prompt or response, [n, width of it]."""
        mask, ids = self.samples.get("attention_mask"), self.samples.get(key)
        if mask is None or ids is None or mask.array.ndim != 2 or ids.array.ndim != 2:
            return None
        prompts = self.samples.get("prompt_ids")
        width = 0 if prompts is None or prompts.lengths is not None else prompts.shape[1]
        answers = self.samples.get("response_ids")
        whole = width + (answers.shape[1] if answers is not None and answers.lengths is None else 0)
        if mask.shape[1] == whole:
            part = mask.array[:, :width] if key == "prompt_ids" else mask.array[:, width:]
            return np.asarray(part) if part.shape[1] == ids.shape[1] else None
        alone = mask.shape[1] == ids.shape[1] and key == "prompt_ids"
        return np.asarray(mask.array) if alone else None

    def _block(self, key: str, width: int) -> Array:
        """Return rows cut or filled up with zeros to a width."""
        array = self.samples[key].array
        short = width - array.shape[1]
        return np.pad(array, ((0, 0), (0, short))) if short > 0 else array[:, :width]

    @cached_property
    def lengths(self) -> Array:
        """Return the number of real response tokens of each sample, [n]."""
        value = self.samples.get("response_ids")
        for key in ("response_ids", *LOG_PROBS):
            one = self.samples.get(key)
            if one is not None and one.lengths is not None:
                return one.lengths
        attention = self._attention("response_ids")
        if attention is not None:
            return _last(attention)
        mask = self.samples.get("response_mask")
        if mask is not None and mask.array.ndim == 2:
            return _last(mask.array)
        known = value or next((self.samples[k] for k in LOG_PROBS if k in self.samples), None)
        width = known.shape[1] if known is not None and len(known.shape) > 1 else 0
        return np.full(self.size, width, dtype=np.int64)

    @cached_property
    def mask(self) -> Array | None:
        """Return which response tokens count, [n, width]; None when no mask was saved."""
        value = self.samples.get("response_mask")
        if value is None or value.array.ndim != 2:
            return None
        mask: Array = value.array != 0
        if value.lengths is not None:
            mask &= within(value.lengths, value.shape[1])
        return mask

    @cached_property
    def prompts(self) -> tuple[Array, Array] | None:
        """Return prompt ids [n, width] and which of them are no padding."""
        value = self.samples.get("prompt_ids")
        if value is None or value.array.ndim != 2 or value.array.dtype == object:
            return None
        ids = whole(value.array)
        if value.lengths is not None:
            return ids, within(value.lengths, ids.shape[1])
        filled = ids != self.pad if self.pad is not None else np.ones(ids.shape, dtype=bool)
        before = np.cumsum(filled, axis=1) > 0
        after = np.cumsum(filled[:, ::-1], axis=1)[:, ::-1] > 0
        return ids, before & after

    @cached_property
    def responses(self) -> tuple[Array, Array] | None:
        """Return response ids [n, width] and which of them are real."""
        value = self.samples.get("response_ids")
        if value is None or value.array.ndim != 2 or value.array.dtype == object:
            return None
        ids = whole(value.array)
        return ids, within(self.lengths, ids.shape[1])

    @cached_property
    def prompt_fits(self) -> Array | None:
        """Tell of each sample whether attention sees just the prompt's tokens, [n]."""
        attention, prompts = self._attention("prompt_ids"), self.prompts
        if attention is None or prompts is None or attention.shape != prompts[1].shape:
            return None
        fits: Array = ((attention != 0) == prompts[1]).all(axis=1)
        return fits


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
    size = next((joined[k][0].shape[0] for k in COUNTS if k in joined and joined[k][0].shape), 0)
    samples, others = {}, {}
    for key, some in joined.items():
        for value in some:
            if size and not value.entry and value.shape[:1] == (size,):
                samples[key] = value
            else:
                others[key, value.entry] = value
    return Batch(micro, size, samples, others)


def _joined(key: str, values: list[Value]) -> list[Value]:
    """Return a list of rows, one a sample, as one ragged value."""
    rows = all(value.entry.isdecimal() and len(value.shape) == 1 for value in values)
    if key not in (*IDENTITY, *TOKENS) or not rows:
        return values
    ordered = sorted(values, key=lambda value: int(value.entry))
    return [ragged_value(values[0].micro, key, [v.array for v in ordered], values[0].dtype)]


def trusted_pad(some: Iterable[Batch]) -> int | None:
    """Return the id that fills rows up, by the batches whose attention fits it; None: unknown."""
    fitting = [b.pad for b in some if b.prompt_fits is not None and b.prompt_fits.all()]
    return frequent(np.array([pad for pad in fitting if pad is not None], dtype=np.int64))


def same_bytes(x: Array, y: Array) -> bool:
    """Tell whether two arrays of numbers are the same, bit by bit."""
    if x is y or x.dtype != y.dtype or x.shape != y.shape:
        return x is y
    if not (x.flags.c_contiguous and y.flags.c_contiguous):
        return x.tobytes() == y.tobytes()
    word = np.uint8 if x.nbytes % 8 else np.uint64
    x, y = x.reshape(-1).view(word), y.reshape(-1).view(word)
    # most that differ do so at once
    return np.array_equal(x[:512], y[:512]) and np.array_equal(x[512:], y[512:])


def whole(ids: Array) -> Array:
    """Return token ids as integers; SingleSave of msprobe writes them as floats."""
    return ids if ids.dtype.kind in "iu" else ids.astype(np.int64)


def within(lengths: Array, width: int) -> Array:
    """Return which places of each row lie below its length, [n, width]."""
    below: Array = np.arange(width) < lengths[:, None]
    return below


def first_true(marked: Array) -> Array:
    """Return the first marked place of each row; 0 where there is none, [n]."""
    first: Array = marked.argmax(axis=1) if marked.shape[1] else np.zeros(len(marked), np.int64)
    return first


def frequent(ids: Array) -> int | None:
    """Return the most frequent id; None when there is none."""
    if not ids.size:
        return None
    values, counts = np.unique(ids, return_counts=True)
    return int(values[counts.argmax()])


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


def _last(mask: Array) -> Array:
    """Return one more than the last place of each row that is not 0; 0 when all are, [n]."""
    marked = mask != 0
    width = marked.shape[1]
    if not width:
        return np.zeros(len(marked), dtype=np.int64)
    last = width - first_true(marked[:, ::-1])
    found: Array = last * marked[np.arange(len(marked)), last - 1]
    return found


def _beyond(mask: Array) -> Array:
    """Return which places lie behind the last one that counts."""
    return ~within(_last(mask), mask.shape[1])
