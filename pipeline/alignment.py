"""Aligns two sequences of calls: which call of one is which of the other, where some are missing.

A global alignment with affine gaps: a run of inserted calls costs little more than one (Gotoh 1982,
"An improved algorithm for matching biological sequences", J. Mol. Biol. 162). Only calls of one
operation are ever paired. The place in the source outranks everything else that two calls have in
common: an inserted call may read the very tensor that the old one read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

Calls = Mapping[str, Any]
"""Column -> array, one element a call, as in diff/uneven; 0 is unknown for site and module."""

COLUMNS = ("operation", "site", "module", "shapes", "call_index", "size", "peak")
SITE, OTHER_SITE = 4.0, -3.0
MODULE, OTHER_MODULE = 3.0, -2.0
SHAPES, OTHER_SHAPES = 2.0, -1.0
INPUTS, NUMBER, OPERATION = 1.5, 0.5, 1.0
NEAR = 1e-4
OPEN, EXTEND = 1.0, 0.05
NEVER = np.float32(-1e6)

WINDOW = 8192
"""Calls of each side that are aligned at a time: 64 MiB of choices."""

DIAGONAL, UP, LEFT, UP_GOES_ON, LEFT_GOES_ON = 0, 1, 2, 4, 8


def align(bench: Calls, target: Calls, *, same_shapes: bool = False) -> list[tuple[int, int]]:
    """Return the pairs of two sequences as positions, in order.

    Args:
        bench, target: the calls.
        same_shapes: never pair calls that read other shapes.
    """
    found: list[tuple[int, int]] = []
    at = [0, 0]
    size = [len(bench["operation"]), len(target["operation"])]
    while at[0] < size[0] and at[1] < size[1]:
        window = [_cut(side, at[k], at[k] + WINDOW) for k, side in enumerate((bench, target))]
        pairs = list(_window(*window))
        last = all(at[k] + WINDOW >= size[k] for k in (0, 1))
        if not last:  # what stands near the end of a window may belong to what comes after it
            pairs = [pair for pair in pairs if max(pair) < WINDOW // 2]
        found += [(at[0] + i, at[1] + j) for i, j in pairs]
        step = [p + 1 for p in pairs[-1]] if pairs else [WINDOW // 2] * 2
        at = size if last else [at[0] + step[0], at[1] + step[1]]
    return list(_plausible(found, bench, target, same_shapes))


def _cut(calls: Calls, start: int, stop: int | None) -> dict[str, Any]:
    return {name: calls[name][start:stop] for name in COLUMNS}


def _window(bench: Calls, target: Calls) -> Iterator[tuple[int, int]]:
    """Yield the pairs of two windows; calls at the begin that agree in everything pair at once."""
    most = min(len(bench["operation"]), len(target["operation"]))
    same = np.ones(most, dtype=bool)
    for name in COLUMNS[:-2]:
        same &= bench[name][:most] == target[name][:most]
    same &= _agree(_cut(bench, 0, most), _cut(target, 0, most))
    alike = most if same.all() else int(np.argmin(same))
    yield from ((i, i) for i in range(alike))
    bench, target = _cut(bench, alike, None), _cut(target, alike, None)
    yield from ((alike + i, alike + j) for i, j in _trace(_choices(bench, target)))


def _agree(bench: Calls, target: Calls) -> Any:
    """Tell whether the inputs of calls are nearly equal."""
    pairs = [(bench[name], target[name]) for name in ("size", "peak")]
    near = [np.abs(a - b) <= NEAR * np.maximum(np.abs(a), np.abs(b)) for a, b in pairs]
    return near[0] & near[1]


def _scores(bench: Calls, row: int, target: Calls) -> Any:
    """Return what it is worth to pair one call of the benchmark with each of the target."""

    def known(name: str, same: float, other: float) -> Any:
        here, there = bench[name][row], target[name]
        worth = np.where(there == here, np.float32(same), np.float32(other))
        return worth if here else np.float32(0) * worth

    site, module = known("site", SITE, OTHER_SITE), known("module", MODULE, OTHER_MODULE)
    site[target["site"] == 0] = 0
    module[target["module"] == 0] = 0
    worth = site + module + np.float32(OPERATION)
    worth += np.where(target["shapes"] == bench["shapes"][row], SHAPES, OTHER_SHAPES)
    worth += np.float32(INPUTS) * _agree({name: bench[name][row] for name in COLUMNS}, target)
    worth += np.float32(NUMBER) * (target["call_index"] == bench["call_index"][row])
    worth[(target["operation"] != bench["operation"][row]) | (worth < 0)] = NEVER
    return worth.astype(np.float32)


def _choices(bench: Calls, target: Calls) -> Any:
    """Return for each pair of prefixes how its best alignment ends, as bits."""
    rows, columns = len(bench["operation"]), len(target["operation"])
    place = np.arange(columns + 1, dtype=np.float32) * np.float32(EXTEND)
    best = np.concatenate(([np.float32(0)], -OPEN - place[:-1])).astype(np.float32)
    up = np.full(columns + 1, NEVER, dtype=np.float32)
    choices = np.full((rows + 1, columns + 1), LEFT | LEFT_GOES_ON, dtype=np.uint8)
    for row in range(rows):
        opened, longer = best - np.float32(OPEN), up - np.float32(EXTEND)
        up = np.maximum(opened, longer)
        diagonal = np.full(columns + 1, NEVER, dtype=np.float32)
        diagonal[1:] = best[:-1] + _scores(bench, row, target)
        ends = np.maximum(diagonal, up)
        left = np.full(columns + 1, NEVER, dtype=np.float32)
        left[1:] = np.maximum.accumulate(ends + place)[:-1] - place[1:] - np.float32(OPEN - EXTEND)
        best = np.maximum(ends, left)
        bits = np.where(best == diagonal, DIAGONAL, np.where(best == up, UP, LEFT)).astype(np.uint8)
        bits[longer > opened] |= UP_GOES_ON
        bits[1:][left[:-1] - np.float32(EXTEND) > ends[:-1] - np.float32(OPEN)] |= LEFT_GOES_ON
        choices[row + 1] = bits
    return choices


def _trace(choices: Any) -> list[tuple[int, int]]:
    """Return the pairs of the best alignment, in order."""
    i, j = choices.shape[0] - 1, choices.shape[1] - 1
    pairs, going = [], DIAGONAL  # the gap that is under way
    while i > 0 and j > 0:
        bits = int(choices[i, j])
        move = going or bits & 3
        if move == DIAGONAL:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif move == UP:
            going = UP if bits & UP_GOES_ON else DIAGONAL
            i -= 1
        else:
            going = LEFT if bits & LEFT_GOES_ON else DIAGONAL
            j -= 1
    return pairs[::-1]


def _plausible(
    pairs: list[tuple[int, int]], bench: Calls, target: Calls, same_shapes: bool
) -> Iterator[tuple[int, int]]:
    """Yield the pairs, with what stands between two pairs of equal shapes seen as a whole.

    Where both sides have calls of their own there, another implementation does: a pair of unequal
    shapes in it is an accident. Where both do the same operations on the same shapes, the code only
    moved to another place.
    """
    held: list[tuple[int, int]] = []
    i, j = -1, -1
    end = len(bench["operation"]), len(target["operation"])
    for pair in [*pairs, end]:
        if pair != end and bench["shapes"][pair[0]] != target["shapes"][pair[1]]:
            held.append(pair)
            continue
        ours, theirs = range(i + 1, pair[0]), range(j + 1, pair[1])
        if _same_work(bench, ours, target, theirs):
            yield from zip(ours, theirs, strict=True)
        elif not same_shapes and not min(len(ours), len(theirs)) > len(held):
            yield from held
        if pair != end:
            yield pair
        held, (i, j) = [], pair


def _same_work(bench: Calls, ours: range, target: Calls, theirs: range) -> bool:
    here, there = (slice(run.start, run.stop) for run in (ours, theirs))
    return len(ours) == len(theirs) and all(
        bool((bench[name][here] == target[name][there]).all()) for name in ("operation", "shapes")
    )


def align_parts(calls: Calls, *, same_shapes: bool) -> list[tuple[int, int, int]]:
    """Return (step, seq in the benchmark, seq in the target) of the calls of all parts that pair.

    Args:
        calls: column -> array, of the rows of diff/uneven.
        same_shapes: never pair calls that read other shapes.
    """
    keys = list(zip(*(calls[name].tolist() for name in ("step", "part", "side")), strict=True))
    starts = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]] + [len(keys)]
    runs = {keys[a]: slice(a, b) for a, b in pairwise(starts)}
    pairs = []
    for (step, part, side), bench in runs.items():
        target = runs.get((step, part, "target"))
        if side != "bench" or target is None:
            continue
        ours, theirs = ({name: calls[name][r] for name in COLUMNS} for r in (bench, target))
        seqs = calls["seq"][bench], calls["seq"][target]
        for i, j in align(ours, theirs, same_shapes=same_shapes):
            pairs.append((step, int(seqs[0][i]), int(seqs[1][j])))
    return pairs
