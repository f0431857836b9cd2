"""Numbers of one key, compared: whole arrays as msprobe does, and over the tokens that count.

KL estimators of the log-ratio r = exp(b - a), after Schulman, "Approximating KL Divergence" (2020):
k1 = a - b, k2 = (b - a)^2 / 2, k3 = exp(b - a) - 1 - (b - a); each has expectation KL(a || b) under
samples of a (k2 to second order).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .rl_batches import Array

ROUNDING = 2.0**-7
"""Relative error of a number that was bfloat16 on one side: twice that of rounding to nearest."""
SMALL, TINY = 0.05, 1e-30
CLIP = 0.2
"""Half width of the ratio that PPO lets pass (Schulman et al., 2017)."""


def array_difference(a: Array, b: Array) -> dict[str, Any]:
    """Return how two arrays differ as a whole; of other shapes, over the corner they share.

    `total` counts the elements of the rectangle around both, so what one side lacks is not equal.
    NaN equals NaN; where one side alone is not finite, no error is counted.
    """
    corner = tuple(slice(0, min(n, m)) for n, m in zip(a.shape, b.shape, strict=False))
    total = int(
        np.prod([max(n, m) for n, m in zip(a.shape, b.shape, strict=False)], dtype=np.int64)
    )
    if a.ndim != b.ndim:
        a, b = a.reshape(-1), b.reshape(-1)
        corner, total = (slice(0, min(len(a), len(b))),), max(len(a), len(b))
    x, y = a[corner], b[corner]
    found: dict[str, Any] = dict.fromkeys(("max_abs", "max_rel"), 0.0)
    found |= {"equal": x.size, "total": total, "first": None, "within_3": x.size}
    found |= {"within_2": x.size, "nan_1": 0, "nan_2": 0}
    if x.dtype == object or y.dtype == object:
        same = np.asarray(x.astype(str) == y.astype(str))
        found |= {
            "equal": int(same.sum()),
            "within_3": int(same.sum()),
            "within_2": int(same.sum()),
        }
        found |= {"first": _first(same, a, corner), "max_abs": None, "max_rel": None}
    elif not (x.dtype == y.dtype and _same_bytes(x, y)):
        found |= _differences(x, y, a, corner)
    elif x.dtype.kind == "f":
        found |= dict.fromkeys(
            ("nan_1", "nan_2"), int(np.isnan(x).sum()) if np.isnan(x.sum()) else 0
        )
    if found["first"] is None and x.size < total:
        found["first"] = _first(np.zeros(a.shape, bool), a, corner, beyond=True)
    return found


def _differences(x: Array, y: Array, a: Array, corner: tuple[slice, ...]) -> dict[str, Any]:
    x, y = _floats(x, y)
    found: dict[str, Any] = {"nan_1": 0, "nan_2": 0}
    with np.errstate(invalid="ignore", over="ignore"):
        same = x == y
        error = np.abs(x - y)
        size = np.maximum(np.abs(x), np.abs(y))
        if not np.isfinite(error.max(initial=0.0)):
            nan_x, nan_y = np.isnan(x), np.isnan(y)
            found = {"nan_1": int(nan_x.sum()), "nan_2": int(nan_y.sum())}
            same |= nan_x & nan_y
            # where one side alone is NaN there is no error, and nothing is close
            error = np.where(same | nan_x | nan_y, 0, error)
            size = np.where(nan_x ^ nan_y, 0, np.where(same, 1, size))
            far = int((nan_x ^ nan_y).sum())
            relative = np.where(np.isinf(error), 1, error / np.maximum(size, TINY))
        else:
            far, relative = 0, error / np.maximum(size, TINY)
    return found | {
        "equal": int(np.count_nonzero(same)),
        "first": _first(same, a, corner),
        "max_abs": float(error.max(initial=0.0)),
        "max_rel": float(relative.max(initial=0.0)),
        "within_3": int(np.count_nonzero(relative <= 1e-3) - far),
        "within_2": int(np.count_nonzero(relative <= 1e-2) - far),
    }


def _floats(x: Array, y: Array) -> tuple[Array, Array]:
    """Return numbers in a float type that both fit in; token ids and masks in float64."""
    if x.dtype.kind == "f" and x.dtype == y.dtype and x.itemsize >= 4:
        return x, y
    return x.astype(np.float64), y.astype(np.float64)


def _same_bytes(x: Array, y: Array) -> bool:
    return (
        x.size == y.size and bool((x.view(np.uint8) == y.view(np.uint8)).all())
        if (x.flags.c_contiguous and y.flags.c_contiguous and x.ndim)
        else x.tobytes() == y.tobytes()
    )


def _first(same: Array, a: Array, corner: tuple[slice, ...], *, beyond: bool = False) -> int | None:
    """Return the flat index in `a` of the first element that is not the same."""
    if beyond:
        whole = np.zeros(a.shape, dtype=bool)
        whole[corner] = True
        same = whole
    else:
        if same.all():
            return None
        if same.shape != a.shape:
            whole = np.ones(a.shape, dtype=bool)
            whole[corner] = same
            same = whole
    other = ~same.reshape(-1)
    return int(other.argmax()) if other.any() else None


def counted_differences(
    a: Array, b: Array, counted: Array, *, rounding: bool = True
) -> dict[str, Any]:
    """Return sums over the tokens that count, a row a pair.

    Args:
        a: numbers of one side [m, width].
        b: of the other, [m, width].
        counted: which of them to look at [m, width].
        rounding: whether to count what rounding does not explain; log-probs have a rule of their
            own.
    """
    x, y = _floats(a, b)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = y - x
        bad = None
        if not np.isfinite(gap.sum()):
            finite_x, finite_y = np.isfinite(x), np.isfinite(y)
            bad = ~(finite_x & finite_y)
        nan = _nonfinite(a, b, counted, bad)
        use = counted if bad is None else counted & ~bad
        gap = np.where(use, gap, 0)
        size = np.abs(gap)
        none = np.zeros(len(gap), dtype=np.int64)
        off = _off(x, y, size, use) if rounding and size.any() else none
    rows = np.arange(len(gap))
    place = size.argmax(axis=1) if gap.shape[1] else rows * 0
    largest = size[rows, place] if gap.shape[1] else np.zeros(len(rows))
    return {
        "n": use.sum(axis=1),
        "sum": gap.sum(axis=1, dtype=np.float64),
        "sum_abs": size.sum(axis=1, dtype=np.float64),
        "max_abs": largest.astype(np.float64),
        "max_token": place,
        "differ": np.count_nonzero(size, axis=1),
        "off": off,
        **nan,
    }


def _off(x: Array, y: Array, size: Array, use: Array) -> Array:
    """Return how many numbers of each row are further apart than rounding explains, [m].

    Numbers near zero are sums of larger ones: what counts is the usual size of a row's numbers.
    """
    largest = np.where(use, np.maximum(np.abs(x), np.abs(y)), 0)
    usual = np.sqrt(np.square(largest).sum(axis=1) / np.maximum(use.sum(axis=1), 1))
    limit = ROUNDING * np.maximum(largest, usual[:, None]) + 1e-7
    found: Array = np.count_nonzero(size > limit, axis=1)
    return found


def _nonfinite(a: Array, b: Array, counted: Array, bad: Array | None) -> dict[str, Any]:
    """Return how many numbers of each row are not finite: where they count, and elsewhere."""
    names = ("nan_a", "nan_b", "hidden_a", "hidden_b")
    if bad is None:
        return dict.fromkeys(names, np.zeros(len(a), dtype=np.int64))
    odd = [~np.isfinite(array.astype(np.float64)) for array in (a, b)]
    counts = [(one & where).sum(axis=1) for where in (counted, ~counted) for one in odd]
    return dict(zip(names, counts, strict=True))


def log_prob_sums(a: Array, b: Array, counted: Array) -> dict[str, Any]:
    """Return what KL estimators, ratios and the correlation need, a row a pair.

    Args:
        a: log-probabilities of one side [m, width].
        b: of the other, [m, width].
        counted: which of them to look at [m, width].
    """
    with np.errstate(invalid="ignore", over="ignore"):
        x, y = (one * counted for one in _floats(a, b))
        if not np.isfinite(x.sum() + y.sum()):  # NaN times 0 is NaN
            use = counted & np.isfinite(a) & np.isfinite(b)
            x, y = np.where(use, a, 0), np.where(use, b, 0)
        gap = y - x
        k3, outside = _excess(gap)
    k3_sums = _sum(k3)
    found: dict[str, Any] = {"clipped": outside, "sum_ratio": _sum(gap) + k3_sums}
    found |= {"sum_k2": _dot(gap, gap) / 2, "sum_k3": k3_sums}
    found |= {"sum_a": _sum(x), "sum_b": _sum(y)}
    return found | {"sum_aa": _dot(x, x), "sum_bb": _dot(y, y), "sum_ab": _dot(x, y)}


def _excess(gap: Array) -> tuple[Array, Array]:
    """Return exp(gap) - 1 - gap, [m, width], and how many ratios of each row would be clipped, [m].

    By its series where the gap is small: there the difference would lose all digits, and few gaps
    are large. The first term left out is gap^5 / 120, below 2e-6 of the sum.
    """
    k3 = gap * gap * (0.5 + gap * (1 / 6 + gap * (1 / 24)))
    rows, places = np.nonzero(np.abs(gap) > SMALL)
    large = gap[rows, places].astype(np.float64)
    ratio = np.expm1(large)
    k3[rows, places] = ratio - large
    return k3, np.bincount(rows[np.abs(ratio) > CLIP], minlength=len(gap))


def _sum(numbers: Array) -> Array:
    total: Array = numbers.sum(axis=1, dtype=np.float64)
    return total


def _dot(x: Array, y: Array) -> Array:
    total: Array = np.einsum("ij,ij->i", x, y, dtype=np.float64)
    return total
