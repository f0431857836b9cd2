"""Rows of two sides laid beside each other: what differs, token by token, as numbers for SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .readers.rollouts import Packed
from .rl_batches import Batch, digests, mix
from .rl_gap import Counting
from .rl_layout import Array, Layout, count, first_true, same_bytes, same_content, within
from .rl_tables import Nullable


@dataclass(frozen=True)
class Side:
    """The rows of one side, in the order of the pairs.

    Args:
        batches: what they come from.
        batch: place in `batches` of each row, [m].
        place: row in its batch, [m].
    """

    batches: Sequence[Batch]
    batch: Array
    place: Array

    def has(self, key: str) -> bool:
        """Tell whether every row has a value of this key, of as many dimensions."""
        values = [self.batches[one].samples.get(key) for one in self._used]
        return None not in values and len({len(one.shape) for one in values if one}) == 1

    @cached_property
    def _used(self) -> list[int]:
        return sorted(set(self.batch.tolist()))

    def dtype(self, key: str) -> str:
        """Return the dtype that a key was saved in."""
        return self.batches[int(self.batch[0])].samples[key].dtype

    def name(self, key: str) -> str:
        """Return what the user called a key."""
        return self.batches[int(self.batch[0])].samples[key].name or key

    def shape(self, key: str) -> tuple[int, ...]:
        """Return the shape of the value that the first row comes from."""
        return self.batches[int(self.batch[0])].samples[key].shape

    def content(self, key: str) -> Array | Packed | None:
        """Return the values of a key as they were saved, if these rows are all of them."""
        value = self.batches[0].samples[key]
        whole = len(self.batches) == 1 and self._in_order and len(self.place) == value.shape[0]
        return value.content if whole else None

    def rows(self, key: str) -> Array:
        """Return the rows of a key, filled up with zeros to the widest."""
        return self._of([batch.samples[key].array for batch in self.batches])

    def lengths(self, key: str) -> Array | None:
        """Return the length of each row of a ragged key; None when it is a rectangle."""
        values = [batch.samples[key] for batch in self.batches]
        if all(value.lengths is None for value in values):
            return None
        widths = [
            np.full(value.shape[0], value.shape[1]) if value.lengths is None else value.lengths
            for value in values
        ]
        return self._of(widths)

    @property
    def _layouts(self) -> list[Layout]:
        return [batch.layout for batch in self.batches]

    @cached_property
    def real(self) -> Array:
        """Return the number of real response tokens, [m]."""
        return self._of([one.lengths for one in self._layouts])

    @cached_property
    def mask(self) -> Array | None:
        """Return which response tokens count, [m, width]."""
        masks = [one.mask for one in self._layouts]
        known = [mask for mask in masks if mask is not None]
        return self._of(known) if len(known) == len(masks) else None

    @cached_property
    def responses(self) -> Array | None:
        """Return response ids, [m, width]."""
        ids = [one.responses for one in self._layouts]
        known = [one for one in ids if one is not None]
        return self._of(known) if len(known) == len(ids) else None

    @cached_property
    def prompts(self) -> tuple[Array, Array] | None:
        """Return prompt ids [m, width], and which are no padding."""
        both = [one.prompts for one in self._layouts if one.prompts is not None]
        if len(both) < len(self.batches):
            return None
        return self._of([ids for ids, _ in both]), self._of([real for _, real in both])

    @cached_property
    def prompt_fits(self) -> Array | None:
        """Tell whether attention sees just the prompt's tokens, [m]."""
        fits = [one.prompt_fits for one in self._layouts]
        known = [one for one in fits if one is not None]
        return self._of(known) if len(known) == len(fits) else None

    @cached_property
    def _in_order(self) -> bool:
        """Tell whether the rows follow each other as in their batch."""
        return bool((np.diff(self.place) == 1).all())

    def _of(self, arrays: Sequence[Array]) -> Array:
        """Return the rows of the pairs, of arrays with the rows of the batches."""
        if len(arrays) == 1:
            (only,) = arrays
            return only if self._in_order and len(self.place) == len(only) else only[self.place]
        tail = np.max([array.shape[1:] for array in arrays], axis=0)
        kind = np.result_type(*(array.dtype for array in arrays))
        found = np.zeros((len(self.batch), *map(int, tail)), dtype=kind)
        for number, array in enumerate(arrays):
            taken = self.batch == number
            inner = tuple(slice(0, size) for size in array.shape[1:])
            found[(taken, *inner)] = array[self.place[taken]]
        return found


@dataclass(frozen=True)
class Aligned:
    """Both sides of some pairs.

    Args:
        pairs: their numbers, [m].
        a: one side.
        b: the other.
    """

    pairs: Array
    a: Side
    b: Side

    def same(self, a_key: str, b_key: str) -> bool:
        """Tell whether both sides saved the very same, bit by bit; what is packed stays so."""
        a, b = self.a.content(a_key), self.b.content(b_key)
        return a is not None and b is not None and same_content(a, b)

    @cached_property
    def first_difference(self) -> Array:
        """Return the first token at which the ids differ, -1 where they do not, [m]."""
        shorter, longer = np.minimum(self.a.real, self.b.real), np.maximum(self.a.real, self.b.real)
        end = np.where(shorter == longer, -1, shorter)
        ids_a, ids_b = self.a.responses, self.b.responses
        if ids_a is None or ids_b is None:
            return end
        if same_bytes(ids_a, ids_b):
            return end
        width = min(ids_a.shape[1], ids_b.shape[1])
        other = (ids_a[:, :width] != ids_b[:, :width]) & within(shorter, width)
        first: Array = np.where(other.any(axis=1), first_true(other), end)
        return first

    @cached_property
    def comparable(self) -> Array:
        """Return how many tokens, from the first on, are the same on both sides, [m]."""
        shorter = np.minimum(self.a.real, self.b.real)
        found: Array = np.where(self.first_difference < 0, shorter, self.first_difference)
        return found

    @cached_property
    def counted(self) -> Array:
        """Return which tokens both masks count, before the first differing id, [m, width]."""
        masks = [mask for mask in (self.a.mask, self.b.mask) if mask is not None]
        if not masks:
            return within(self.comparable, int(self.comparable.max(initial=0)))
        width = min(mask.shape[1] for mask in masks)
        found = masks[0][:, :width]
        if not (len(masks) == 2 and self.same_mask):
            found = found & masks[-1][:, :width]
        if (self.first_difference < 0).all():
            return found
        return found & self.known(width)

    @cached_property
    def counting(self) -> Counting:
        """Return the same, with what follows from it."""
        return Counting(self.counted)

    @cached_property
    def same_mask(self) -> bool:
        """Tell whether both sides have masks, and the same ones."""
        a, b = self.a.mask, self.b.mask
        return a is not None and b is not None and same_bytes(a, b)

    def known(self, width: int) -> Array:
        """Return which tokens stand before the first differing id, [m, width]."""
        return within(self.comparable, width) | (self.first_difference < 0)[:, None]

    @cached_property
    def ids(self) -> Array | None:
        """Return response ids, of either side, [m, width]."""
        return self.b.responses if self.a.responses is None else self.a.responses

    def contexts(self, rows: Array) -> Array:
        """Return a number for prompt and prefix of each token of some rows, [rows, width].

        Without ids, nothing tells that two tokens follow the same: each has one of its own.
        """
        if self.ids is None:
            place = np.arange(self.counted.shape[1], dtype=np.uint64)
            return mix(mix(self.pairs[rows])[:, None] + place)
        ids, prompts = self.ids[rows], self.a.prompts
        if prompts is None:
            start = mix(self.pairs[rows])
        else:
            start = digests(prompts[0][rows], prompts[1][rows])
        place = np.arange(ids.shape[1], dtype=np.uint64)
        with np.errstate(over="ignore"):
            terms = mix((ids.astype(np.uint64) << np.uint64(24)) + place)
            before = np.cumsum(terms, axis=1) - terms + start[:, None]
        return mix(before)


def facts(aligned: Aligned) -> dict[str, Any]:
    """Return what of ids, masks and layout differs, a row a pair."""
    a, b = aligned.a, aligned.b
    found: dict[str, Any] = {
        "pair": aligned.pairs,
        "tokens_a": a.real,
        "tokens_b": b.real,
        "first_difference": _known(aligned.first_difference),
        "prefix": aligned.first_difference == np.minimum(a.real, b.real),
        **_end_facts(aligned),
        **_mask_facts(aligned),
        **_prompt_facts(a, b),
    }
    for name, side in (("a", a), ("b", b)):
        found[f"fits_{name}"] = side.prompt_fits
    return found


def _known(places: Array) -> Nullable:
    return places, places < 0


def _end_facts(aligned: Aligned) -> dict[str, Any]:
    """Return the last id of each side: an end token where a response is whole."""
    found: dict[str, Nullable] = {}
    for name, side in (("a", aligned.a), ("b", aligned.b)):
        ids = side.responses
        if ids is not None and ids.shape[1]:
            last = np.clip(side.real - 1, 0, ids.shape[1] - 1)
            ends = ids[np.arange(len(ids)), last]
            found[f"end_{name}"] = ends, side.real == 0
    return found


def _mask_facts(aligned: Aligned) -> dict[str, Any]:
    a, b = aligned.a.mask, aligned.b.mask
    if a is None or b is None:
        return {}
    width = min(a.shape[1], b.shape[1])
    a_all = (a[:, :width] == within(aligned.a.real, width)).all(axis=1)
    shift = np.zeros(len(a), dtype=np.int64)
    found: dict[str, Any] = {"mask_a": count(a), "mask_a_all": a_all}
    if aligned.same_mask and (aligned.a.real == aligned.b.real).all():
        found |= {"mask_b": found["mask_a"], "mask_b_all": a_all}
        return found | {"mask_differs": shift, "mask_shift": shift}
    other = (a[:, :width] != b[:, :width]) & aligned.known(width)
    for number in (-2, 2, -1, 1):  # the smallest, and that to the right, has the last word
        shift[_is_shifted(a[:, :width], b[:, :width], number)] = number
    return found | {
        "mask_differs": count(other),
        "mask_first": _known(np.where(other.any(axis=1), first_true(other), -1)),
        "mask_b": count(b),
        "mask_b_all": (b[:, :width] == within(aligned.b.real, width)).all(axis=1),
        "mask_shift": shift,
    }


def _is_shifted(a: Array, b: Array, shift: int) -> Array:
    """Tell whether b is a, moved to the right by `shift`; what leaves at an end may come back."""
    moved = np.roll(a, shift, axis=1)
    inner = slice(max(0, shift), a.shape[1] + min(0, shift))
    same: Array = (moved[:, inner] == b[:, inner]).all(axis=1) & (a != b).any(axis=1)
    return same


def _prompt_facts(a: Side, b: Side) -> dict[str, Any]:
    if a.prompts is None or b.prompts is None:
        return {}
    (ids_a, real_a), (ids_b, real_b) = a.prompts, b.prompts
    same = digests(ids_a, real_a) == digests(ids_b, real_b)
    first = first_true(real_a) != first_true(real_b)
    return {"prompt_differs": ~same, "prompt_moved": same & first}
