"""Numbers of one key, compared: whole arrays as msprobe does, and over the tokens that count.

KL estimators of the log-ratio r = exp(b - a), after Schulman, "Approximating KL Divergence" (2020):
k1 = a - b, k2 = (b - a)^2 / 2, k3 = exp(b - a) - 1 - (b - a); each has expectation KL(a || b) under
samples of a (k2 to second order).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .rl_gap import Counting, Gap, like
from .rl_layout import Array, count

ROUNDING = 2.0**-7
"""Relative error of a number that was bfloat16 on one side: twice that of rounding to nearest."""
SMALL, TINY = 0.05, 1e-30
CLIP = 0.2
"""Half width of the ratio that PPO lets pass (Schulman et al., 2017)."""


def array_difference(a: Array, b: Array, gap: Gap | None = None) -> dict[str, Any]:
    """Return how two arrays differ as a whole; of other shapes, over the corner they share.

    `total` counts the elements of the rectangle around both, so what one side lacks is not equal.
    NaN equals NaN; where one side alone is not finite, no error is counted. `gap` is theirs, where
    it is known.
    """
    corner = tuple(slice(0, min(n, m)) for n, m in zip(a.shape, b.shape, strict=False))
    total = math.prod(map(max, a.shape, b.shape))
    if a.ndim != b.ndim or not a.ndim:
        a, b = a.reshape(-1), b.reshape(-1)
        corner, total = (slice(0, min(len(a), len(b))),), max(len(a), len(b))
    x, y = a[corner], b[corner]
    found = no_difference(x.size) | {"total": total}
    if x.dtype == object or y.dtype == object:
        same = np.asarray(x.astype(str) == y.astype(str))
        found |= dict.fromkeys(("equal", "within_3", "within_2"), int(same.sum()))
        found |= {"first": _first(~same, a, corner), "max_abs": None, "max_rel": None}
    else:
        found |= _differences(gap or Gap(x, y), a, corner)
    if found["first"] is None and x.size < total:
        beyond = np.ones(a.shape, dtype=bool)
        beyond[corner] = False
        found["first"] = _first(beyond, a, tuple(slice(None) for _ in a.shape))
    return found


def no_difference(size: int) -> dict[str, Any]:
    """Return how two arrays differ that do not."""
    found: dict[str, Any] = dict.fromkeys(("equal", "total", "within_3", "within_2"), size)
    return found | {"first": None, "max_abs": 0.0, "max_rel": 0.0, "nan_1": 0, "nan_2": 0}


def _differences(gap: Gap, a: Array, corner: tuple[slice, ...]) -> dict[str, Any]:
    """Return what is not as it is of equal arrays."""
    if gap.same:
        nan = 0 if np.isfinite(gap.max) else int(np.isnan(gap.a).sum())
        return {"nan_1": nan, "nan_2": nan}
    if not np.isfinite(gap.max):
        return _odd_differences(gap, a, corner)
    size, relative = gap.size.size, gap.relative
    far = like("far", relative, bool)
    return {
        "equal": size - int(np.count_nonzero(gap.differs)),
        "first": _first(gap.differs, a, corner),
        "max_abs": gap.max,
        "max_rel": float(np.fmax.reduce(relative, axis=None, initial=0.0)),
        "within_3": size - int(np.count_nonzero(np.greater(relative, 1e-3, out=far))),
        "within_2": size - int(np.count_nonzero(np.greater(relative, 1e-2, out=far))),
    }


def _odd_differences(gap: Gap, a: Array, corner: tuple[slice, ...]) -> dict[str, Any]:
    """Return the same where some numbers are not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        nan_x, nan_y = np.isnan(gap.a), np.isnan(gap.b)
        same = (gap.a == gap.b) | (nan_x & nan_y)
        # where one side alone is NaN there is no error, and nothing is close
        error = np.where(same | nan_x | nan_y, 0, gap.size)
        size = np.where(nan_x ^ nan_y, 0, np.where(same, 1, gap.largest))
        far = int((nan_x ^ nan_y).sum())
        relative = np.where(np.isinf(error), 1, error / np.maximum(size, TINY))
    return {
        "nan_1": int(nan_x.sum()),
        "nan_2": int(nan_y.sum()),
        "equal": int(np.count_nonzero(same)),
        "first": _first(~same, a, corner),
        "max_abs": float(error.max(initial=0.0)),
        "max_rel": float(relative.max(initial=0.0)),
        "within_3": int(np.count_nonzero(relative <= 1e-3) - far),
        "within_2": int(np.count_nonzero(relative <= 1e-2) - far),
    }


def _first(differs: Array, a: Array, corner: tuple[slice, ...]) -> int | None:
    """Return the flat index in `a` of the first element of a corner that differs."""
    if differs.shape != a.shape:
        inner, differs = differs, np.zeros(a.shape, dtype=bool)
        differs[corner] = inner
    flat = differs.reshape(-1)
    first = int(flat.argmax()) if flat.size else 0
    return first if flat.size and flat[first] else None


def counted_differences(gap: Gap, counting: Counting, *, log_prob: bool) -> dict[str, Any]:
    """Return sums over the numbers that count, a row a pair.

    Args:
        gap: of numbers [m, width].
        counting: which of them to look at [m, width].
        log_prob: whether they are log-probabilities: then with what KL estimators, ratios and the
            correlation need; else with what rounding does not explain.
    """
    zeros = np.zeros(len(gap.a), dtype=np.int64)
    nan = dict.fromkeys(("nan_a", "nan_b", "hidden_a", "hidden_b"), zeros)
    if not np.isfinite(gap.max):
        gap, counting, nan = _finite(gap, counting)
    found: dict[str, Any] = {"n": counting.n, **nan}
    if gap.same or not gap.max:
        found |= dict.fromkeys(("sum", "sum_abs", "max_abs", "max_token", "differ", "off"), zeros)
        return found | (_log_prob_sums(gap, counting, None) if log_prob else {})
    between, size, differs = gap.gap, gap.size, gap.differs
    if np.greater(differs, counting.mask, out=like("far", differs)).any():
        between = between * counting.factors
        size, differs = np.abs(between), differs & counting.mask
    place = size.argmax(axis=1)
    largest = size[np.arange(len(size)), place].astype(np.float64)
    found |= {
        "sum": _sum(between),
        "sum_abs": _sum(size),
        "max_abs": largest,
        "max_token": place,
        "differ": count(differs),
        "off": zeros,
    }
    if log_prob:
        return found | _log_prob_sums(gap, counting, between)
    if largest.any():
        found["off"] = found["differ"] if gap.whole else _off(gap, counting, size)
    return found


def _finite(gap: Gap, counting: Counting) -> tuple[Gap, Counting, dict[str, Array]]:
    """Return the same with what is not finite on either side left out, and how many that was."""
    odd = [~np.isfinite(numbers) for numbers in (gap.a, gap.b)]
    names = ("nan_a", "nan_b", "hidden_a", "hidden_b")
    counts = [count(one & m) for m in (counting.mask, ~counting.mask) for one in odd]
    bad = odd[0] | odd[1]
    rest = Gap(*(np.where(bad, 0, numbers) for numbers in (gap.a, gap.b)))
    return rest, Counting(counting.mask & ~bad), dict(zip(names, counts, strict=True))


def _off(gap: Gap, counting: Counting, size: Array) -> Array:
    """Return how many numbers of each row are further apart than rounding explains, [m].

    Numbers near zero are sums of larger ones: what counts is the usual size of a row's numbers.
    """
    largest = gap.largest * counting.factors
    usual = np.sqrt(_dot(largest, largest) / np.maximum(counting.n, 1))
    return count(size > ROUNDING * np.maximum(largest, usual[:, None]) + 1e-7)


def _log_prob_sums(gap: Gap, counting: Counting, between: Array | None) -> dict[str, Any]:
    """Return what KL estimators, ratios and the correlation need, a row a pair.

    exp(gap) - 1 - gap by its series where the gap is small: there the difference would lose all
    digits, and few gaps are large. The first term left out is gap^5 / 120, below 2e-6 of the sum.
    """
    x = np.multiply(gap.a, counting.factors, out=like("other", gap.a))
    total, squares = _sum(x), _dot(x, x)
    zeros = np.zeros(len(x))
    found: dict[str, Any] = {"sum_a": total, "sum_b": total, "sum_aa": squares}
    found |= dict.fromkeys(("sum_bb", "sum_ab"), squares)
    found |= dict.fromkeys(("clipped", "sum_ratio", "sum_k2", "sum_k3"), zeros)
    if between is None:
        return found
    sums, mixed = _sum(between), _dot(x, between)
    k2, k3, clipped = _excess(between, above=gap.max > SMALL)
    found |= {"clipped": clipped, "sum_ratio": sums + k3, "sum_k2": k2, "sum_k3": k3}
    return found | {
        "sum_b": total + sums,
        "sum_ab": squares + mixed,
        "sum_bb": squares + 2 * (mixed + k2),
    }


def _excess(gap: Array, *, above: bool) -> tuple[Array, Array, Array]:
    """Return sums of gap^2 / 2 and exp(gap) - 1 - gap, and the ratios that PPO would clip, [m].

    `above` tells whether any gap may not be small.
    """
    m = len(gap)
    zeros = np.zeros(m, dtype=np.int64)
    if above:
        apart = np.abs(gap) > SMALL
        rows, places = np.nonzero(apart)
        large = gap[rows, places].astype(np.float64)
        gap = gap * ~apart
    squares = np.multiply(gap, gap, out=like("largest", gap))
    k2 = _sum(squares) / 2
    k3 = k2 + _dot(squares, gap) / 6 + _dot(squares, squares) / 24
    if not above:
        return k2, k3, zeros
    with np.errstate(over="ignore"):
        ratio = np.expm1(large)
    clipped = np.bincount(rows[np.abs(ratio) > CLIP], minlength=m)
    k2 = k2 + np.bincount(rows, large * large / 2, m)
    return k2, k3 + np.bincount(rows, ratio - large, m), clipped


def _sum(x: Array) -> Array:
    total: Array = np.einsum("ij->i", x).astype(np.float64)
    return total


def _dot(x: Array, y: Array) -> Array:
    total: Array = np.vecdot(x, y).astype(np.float64)
    return total
