"""What one task measures: all pairs of samples of a step, key by key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from .readers.dtypes import dtype_of
from .readers.rollouts import Part, part_keys, read_part
from .readers.rollouts.names import TOKENS as TOKEN_KEYS
from .readers.rollouts.names import identity
from .rl_batches import Batch, batches, trusted_pad
from .rl_gap import Counting, Gap
from .rl_keys import LAYOUT, is_input, is_log_prob, looked_at, misfit
from .rl_layout import Array
from .rl_nodes import laid_out
from .rl_pairs import Aligned, Side, facts
from .rl_places import compare_places
from .rl_routing import routing
from .rl_tables import ARRAYS, PAIR_FACTS, PAIR_VALUES, TOKENS, Rows
from .rl_tokens import Tokens
from .rl_values import array_difference, counted_differences, no_difference

MEASURED = {
    "pair_facts": PAIR_FACTS,
    "pair_values": PAIR_VALUES,
    "arrays": ARRAYS,
    "tokens": TOKENS,
}
"""Table -> columns of what a task brings."""
Batches = Mapping[int, tuple[int, list[Batch]]]
"""Part -> its rank and batches."""
LogProb = tuple[str, str, str]
"""Name in the result, key of A, key of B."""


@dataclass(frozen=True)
class MeasureTask:
    """One step, all keys or some.

    Args:
        step: training step.
        a: parts of A by number.
        b: parts of B by number.
        pairs: columns of rl/pairs, [m] each.
        log_probs: what is compared as log-probabilities.
        keys: canonical names; None: all.
        facts: whether ids, masks and tokens are this task's.
        share: of the samples, whose tokens go into `tokens`.
        fetched: files of parts that lie on several nodes.
    """

    step: int
    a: tuple[tuple[int, Part], ...]
    b: tuple[tuple[int, Part], ...]
    pairs: Mapping[str, Array] = field(repr=False)
    log_probs: tuple[LogProb, ...]
    keys: frozenset[str] | None
    facts: bool
    share: float
    fetched: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return what it reads."""
        return tuple(part for _, part in (*self.a, *self.b))

    def __str__(self) -> str:
        return f"step {self.step}, {'all keys' if self.keys is None else sorted(self.keys)}"


def measure(task: MeasureTask) -> dict[str, pa.Table]:
    """Return table -> rows of one task; runs in a worker."""
    with laid_out(task.parts, task.fetched) as here:
        a, b = (_read([(n, here[p]) for n, p in parts], task.keys) for parts in (task.a, task.b))
    b = _sharing(a, b)
    pad = trusted_pad(batch for side in (a, b) for _, some in side.values() for batch in some)
    if pad is not None:
        a, b = _padded(a, pad), _padded(b, pad)
    found = {name: Rows(columns) for name, columns in MEASURED.items()}
    arrays: list[dict[str, Any]] = []
    for (part, batch), chosen in _by_batch(task.pairs, a):
        aligned = _aligned(task.pairs, chosen, batch, b) if len(chosen) else None
        if aligned:
            arrays += _measure_samples(task, aligned, found, _rank(task.a, part), batch)
        if batch.others:
            same = _same(task, chosen, b)
            place = {"step": task.step, "rank": _rank(task.a, part)}
            arrays += compare_places(place, batch, _there(b, place["rank"], batch, same), task.keys)
    found["arrays"].add({name: [row.get(name) for row in arrays] for name in ARRAYS})
    return {name: rows.table() for name, rows in found.items()}


def _read(parts: Iterable[tuple[int, Part]], keys: frozenset[str] | None) -> Batches:
    """Return part -> its rank and batches."""
    return {
        number: (
            part.rank,
            batches(read_part(part, None if keys is None else keys | identity(part_keys(part)))),
        )
        for number, part in parts
    }


def _sharing(a: Batches, b: Batches) -> Batches:
    """Return B with A's layouts where the batch of the same place has the very same."""
    layouts = {(rank, one.micro): one.layout for rank, some in a.values() for one in some}

    def shared(rank: int, batch: Batch) -> Batch:
        other = layouts.get((rank, batch.micro))
        return replace(batch, layout=other) if other and other.agrees(batch.layout) else batch

    return {n: (rank, [shared(rank, one) for one in some]) for n, (rank, some) in b.items()}


def _padded(side: Batches, pad: int) -> Batches:
    """Return the batches with the id that fills rows up on either side."""
    return {
        number: (rank, [replace(one, layout=one.layout.padded(pad)) for one in some])
        for number, (rank, some) in side.items()
    }


def _rank(parts: Sequence[tuple[int, Part]], number: int) -> int:
    return next(part.rank for one, part in parts if one == number)


def _by_batch(pairs: Mapping[str, Array], a: Batches) -> Iterator[tuple[tuple[int, Batch], Array]]:
    """Yield each batch of A with the pairs that have a sample of it, in its order."""
    for number, (_, some) in a.items():
        for batch in some:
            here = (pairs["a_part"] == number) & (pairs["a_micro"] == batch.micro)
            chosen = np.flatnonzero(here)
            yield (number, batch), chosen[np.argsort(pairs["a_place"][chosen], kind="stable")]


def _aligned(pairs: Mapping[str, Array], chosen: Array, batch: Batch, b: Batches) -> Aligned:
    parts, micros = pairs["b_part"][chosen], pairs["b_micro"][chosen]
    known = [(part, one) for part, (_, some) in b.items() for one in some]
    here = [(parts == part) & (micros == one.micro) for part, one in known]
    used = [number for number, rows in enumerate(here) if rows.any()]
    others = [known[number][1] for number in used]
    place = np.argmax([here[number] for number in used], axis=0)
    return Aligned(
        pairs["pair"][chosen],
        Side([batch], np.zeros(len(chosen), dtype=np.int64), pairs["a_place"][chosen]),
        Side(others, place, pairs["b_place"][chosen]),
    )


def _same(task: MeasureTask, chosen: Array, b: Batches) -> dict[tuple[int, int], bool]:
    """Tell of each batch of B whether it holds just the samples of these pairs."""
    parts, micros = task.pairs["b_part"][chosen], task.pairs["b_micro"][chosen]
    return {
        (part, batch.micro): batch.size == len(chosen)
        and bool(((parts == part) & (micros == batch.micro)).all())
        for part, (_, some) in b.items()
        for batch in some
    }


def _there(
    b: Batches, rank: int, batch: Batch, same: Mapping[tuple[int, int], bool]
) -> list[tuple[Batch, bool]]:
    """Return B's batches of a rank and micro step, and whether they hold the same samples."""
    return [
        (one, same.get((number, one.micro), batch.size == one.size == 0))
        for number, (b_rank, some) in b.items()
        for one in some
        if b_rank == rank and one.micro == batch.micro
    ]


def _measure_samples(
    task: MeasureTask, aligned: Aligned, found: Mapping[str, Rows], rank: int, batch: Batch
) -> Iterator[dict[str, Any]]:
    """Compare the samples key by key; add to the tables, and yield the rows of `arrays`."""
    flips, counts = routing(aligned)
    if task.facts:
        found["pair_facts"].add(facts(aligned) | counts)
    tokens = Tokens(aligned, task.share, flips) if task.log_probs else None
    place = {"step": task.step, "rank": rank}
    named = {(a, b): name for name, a, b in task.log_probs}
    same = [(key, key) for key in batch.samples if key not in named.values()]
    pairs = dict.fromkeys([*named, *same])
    for a_key, b_key in pairs:
        if not (aligned.a.has(a_key) and aligned.b.has(b_key)) or not _asked(task, a_key):
            continue
        name = named.get((a_key, b_key), a_key)
        described = {**place, "micro": batch.micro, **_described(name, aligned, a_key, b_key)}
        equal = aligned.same(a_key, b_key)
        if equal and a_key in LAYOUT and dtype_of(aligned.a.dtype(a_key)).kind in "biu":
            yield described | no_difference(math.prod(aligned.a.shape(a_key)))
            continue
        rows_a = aligned.a.rows(a_key)
        rows_b = rows_a if equal else aligned.b.rows(b_key)
        numbers = rows_a.dtype != object and rows_b.dtype != object
        gap = Gap(rows_a, rows_b) if numbers and rows_a.shape == rows_b.shape else None
        described["misfit"] = misfit(a_key, aligned, rows_a, rows_b)
        yield described | array_difference(rows_a, rows_b, gap)
        if not numbers or (a_key in LAYOUT and not is_input(a_key, aligned, gap)):
            continue
        log_prob = (a_key, b_key) in named and is_log_prob(name, aligned, rows_a, rows_b)
        names = name, a_key, b_key
        found["pair_values"].add(_values(aligned, names, rows_a, rows_b, gap, log_prob=log_prob))
        if log_prob and tokens:
            found["tokens"].add(tokens.rows({"key": name, **place}, rows_a, rows_b))


def _asked(task: MeasureTask, key: str) -> bool:
    return task.keys is None or key in task.keys


def _described(name: str, aligned: Aligned, a_key: str, b_key: str) -> dict[str, Any]:
    return {
        "key": name,
        "name": aligned.a.name(a_key),
        "entry": "",
        "of_samples": True,
        "dtype_1": aligned.a.dtype(a_key),
        "dtype_2": aligned.b.dtype(b_key),
        "shape_1": list(aligned.a.shape(a_key)),
        "shape_2": list(aligned.b.shape(b_key)),
        "samples": len(aligned.pairs),
    }


def _values(
    aligned: Aligned, keys: LogProb, a: Array, b: Array, gap: Gap | None, *, log_prob: bool
) -> dict[str, Any]:
    """Return the sums of one key over the numbers that count; `gap` is its, of equal shapes."""
    name, a_key, b_key = keys
    counted = aligned.counted.shape[1]
    known = counted > 0 or bool(aligned.a.real.any() or aligned.b.real.any())
    per_token = a.ndim == b.ndim == 2 and (
        (a_key in TOKEN_KEYS and known) or min(a.shape[1], b.shape[1]) == counted > 1
    )
    flat_a, flat_b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    width = min(flat_a.shape[1], flat_b.shape[1])
    counting = aligned.counting
    if per_token:
        width = min(width, counting.mask.shape[1])
    content: dict[str, Any] = {"key": name, "pair": aligned.pairs}
    fits = np.ones(len(a), dtype=bool)
    for name_of, side, side_key in (("a", aligned.a, a_key), ("b", aligned.b, b_key)):
        lengths = side.lengths(side_key)
        if lengths is not None and per_token:
            content[f"length_{name_of}"] = lengths, lengths == side.real
            fits &= lengths == side.real
    if not per_token:
        counting = Counting(looked_at(aligned, a_key, (len(a), width)))
    elif width < counting.mask.shape[1] or not fits.all():
        counting = Counting(counting.mask[:, :width] & fits[:, None])
    if gap is None or a.shape != (len(a), width):
        gap = Gap(flat_a[:, :width], flat_b[:, :width])
    content |= counted_differences(gap, counting, log_prob=log_prob)
    if not log_prob and width == 1:
        content |= {"sum_a": flat_a[:, 0], "sum_b": flat_b[:, 0]}
    return content
