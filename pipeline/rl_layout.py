"""Where the tokens of a batch stand: which are real, and which count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .readers.rollouts import Packed, Value
from .readers.rollouts.names import LOG_PROBS

Array = npt.NDArray[Any]

MADE_OF = ("prompt_ids", "response_ids", "attention_mask", "response_mask")
"""Keys that tell where tokens stand; of log-probs, the lengths of ragged rows do."""


@dataclass(frozen=True)
class Layout:
    """Which tokens of the samples of a batch are real, and which count.

    Args:
        size: number of samples; 0 when nothing tells.
        samples: key -> value with a row a sample.
        known_pad: the id that fills rows up, where other batches told.
    """

    size: int
    samples: Mapping[str, Value]
    known_pad: int | None = None

    def padded(self, pad: int) -> Layout:
        """Return the same with an id that fills rows up; the same object for the same one."""
        return self._padded.setdefault(pad, replace(self, known_pad=pad))

    @cached_property
    def _padded(self) -> dict[int, Layout]:
        return {}

    def agrees(self, other: Layout) -> bool:
        """Tell whether all that this is made of is the same on the other side, bit by bit."""
        keys = list(MADE_OF)
        if "response_mask" not in self.samples:
            keys += LOG_PROBS
        if "response_ids" not in self.samples:
            keys.append("input_ids")
        ragged = any(
            key in side.samples and side.samples[key].lengths is not None
            for side in (self, other)
            for key in (*MADE_OF, *LOG_PROBS)
        )
        return (
            self.size == other.size
            and not ragged
            and all(_same_value(self.samples.get(key), other.samples.get(key)) for key in keys)
        )

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
            elif key == "response_ids" and self.mask is not None and len(value.shape) == 2:
                found = frequent(value.array[_beyond(_of_width(self.mask, value.shape[1]))])
            else:
                continue
            if found is not None:
                return found
        return None

    def _attention(self, key: str) -> Array | None:
        """Return the attention over prompt or response, [n, width of it]."""
        mask, ids = self.samples.get("attention_mask"), self.samples.get(key)
        if mask is None or ids is None or len(mask.shape) != 2 or len(ids.shape) != 2:
            return None
        width, rest = (_width(self.samples.get(k)) for k in ("prompt_ids", "response_ids"))
        whole = width + rest
        if mask.shape[1] == whole:
            part = mask.array[:, :width] if key == "prompt_ids" else mask.array[:, width:]
            return np.asarray(part) if part.shape[1] == ids.shape[1] else None
        alone = mask.shape[1] == ids.shape[1] and key == "prompt_ids"
        return np.asarray(mask.array) if alone else None

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
        if self.mask is not None:
            return _last(self.mask)
        known = value or next((self.samples[k] for k in LOG_PROBS if k in self.samples), None)
        width = known.shape[1] if known is not None and len(known.shape) > 1 else 0
        return np.full(self.size, width, dtype=np.int64)

    @cached_property
    def mask(self) -> Array | None:
        """Return which response tokens count, [n, width]; None when no mask was saved."""
        value = self.samples.get("response_mask")
        if value is None or len(value.shape) != 2:
            return None
        mask: Array = value.array.astype(bool, copy=False)
        return mask if value.lengths is None else mask & within(value.lengths, value.shape[1])

    @cached_property
    def prompts(self) -> tuple[Array, Array] | None:
        """Return prompt ids [n, width] and which of them are no padding."""
        value = self.samples.get("prompt_ids")
        ids = None if value is None or len(value.shape) != 2 else whole(value.array)
        if value is None or ids is None:
            return None
        if value.lengths is not None:
            return ids, within(value.lengths, ids.shape[1])
        filled = ids != self.pad if self.pad is not None else np.ones(ids.shape, dtype=bool)
        before = np.cumsum(filled, axis=1) > 0
        after = np.cumsum(filled[:, ::-1], axis=1)[:, ::-1] > 0
        return ids, before & after

    @cached_property
    def responses(self) -> Array | None:
        """Return response ids [n, width]; of whole sequences, those that the mask speaks of."""
        value = self.samples.get("response_ids")
        if value is not None:
            return whole(value.array) if len(value.shape) == 2 else None
        value, mask = self.samples.get("input_ids"), self.mask
        if value is None or mask is None or value.lengths is not None or len(value.shape) != 2:
            return None
        ids, before = whole(value.array), value.shape[1] - mask.shape[1]
        return None if ids is None or before < 0 else ids[:, before:]

    @property
    def real(self) -> Array:
        """Return which response ids are real, [n, width]."""
        assert self.responses is not None
        return within(self.lengths, self.responses.shape[1])

    @cached_property
    def prompt_fits(self) -> Array | None:
        """Tell of each sample whether attention sees just the prompt's tokens, [n]."""
        attention, prompts = self._attention("prompt_ids"), self.prompts
        if attention is None or prompts is None or attention.shape != prompts[1].shape:
            return None
        fits: Array = ((attention != 0) == prompts[1]).all(axis=1)
        return fits


def whole(ids: Array) -> Array | None:
    """Return token ids as integers, None for texts; SingleSave of msprobe writes floats."""
    if ids.dtype == object:
        return None
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


def _last(mask: Array) -> Array:
    """Return one more than the last place of each row that is not 0; 0 when all are, [n]."""
    marked = mask.astype(bool, copy=False)
    width = marked.shape[1]
    if not width:
        return np.zeros(len(marked), dtype=np.int64)
    last = width - first_true(marked[:, ::-1])
    found: Array = last * marked[np.arange(len(marked)), last - 1]
    return found


def _width(value: Value | None) -> int:
    """Return the width of a rectangle of ids; 0 where it is none."""
    flat = value is not None and value.lengths is None and len(value.shape) == 2
    return value.shape[1] if value is not None and flat else 0


def _of_width(mask: Array, width: int) -> Array:
    """Return rows cut or filled up with zeros to a width."""
    short = width - mask.shape[1]
    return np.pad(mask, ((0, 0), (0, short))) if short > 0 else mask[:, :width]


def _beyond(mask: Array) -> Array:
    """Return which places lie behind the last one that counts."""
    return ~within(_last(mask), mask.shape[1])


def _same_value(a: Value | None, b: Value | None) -> bool:
    """Tell whether two values have one shape; of what makes a layout, one content."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and (a.key in LOG_PROBS or same_content(a.content, b.content))


def same_content(a: Array | Packed, b: Array | Packed) -> bool:
    """Tell whether two values are the same, bit by bit; what is packed stays so."""
    if isinstance(a, Packed) and isinstance(b, Packed):
        return a is b or bool(a == b)
    if isinstance(a, Packed) or isinstance(b, Packed):
        return False
    return a.dtype != object and same_bytes(a, b)


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


def count(marked: Array) -> Array:
    """Return how many of each row are marked, [m]; eight at a time."""
    bits = np.bitwise_count(np.packbits(marked, axis=1))
    counts: Array = bits.sum(axis=1, dtype=np.int64)
    return counts
