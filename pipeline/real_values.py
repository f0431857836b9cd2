"""How far two tensors are apart, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

ULP_BITS = {"float16": 16, "float32": 32, "float64": 64}


def real_errors(bench: Any, target: Any, dtype: str) -> tuple[Any, ...]:
    """Return max_abs, scale, max_element_rel, cosine, euclid, thousandth, five_thousandths, ulp,
    first_index, other_nonfinite and other_bits of two arrays of one shape.

    Relative errors are those of msprobe: an element of the benchmark that is zero counts with the
    machine epsilon added to both. Cosine similarity is None when a side is zero: it is not defined.

    Args:
        bench, target: the elements.
        dtype: of the target, as recorded: bfloat16 elements come as float32.
    """
    a, b = (side.astype(np.float64).ravel() for side in (bench, target))
    both = np.isfinite(a) & np.isfinite(b)
    alike = (a == b) | (np.isnan(a) & np.isnan(b))
    other = bool((~both & ~alike).any())
    places = np.argwhere((a != b).reshape(bench.shape) & ~(np.isnan(bench) & np.isnan(target)))
    first = [int(i) for i in places[0]] if len(places) and bench.ndim else None
    other_bits = bool(alike.all()) and not other and bench.dtype == target.dtype
    other_bits = other_bits and bench.tobytes() != target.tobytes()
    a, b = a[both], b[both]
    if not len(a):
        return (0.0, None, 0.0, None, 0.0, 1.0, 1.0, 0, first, other, other_bits)
    off = np.abs(b - a)
    zero = np.finfo(np.float64).eps * (a == 0)
    relative = np.abs((b + zero - a - zero) / np.where(a == 0, zero, a))
    return (
        float(off.max()),
        float(max(np.abs(a).max(), np.abs(b).max())),
        float(relative.max()),
        _cosine(a, b),
        float(np.linalg.norm(b - a)),
        float((relative < 0.001).mean()),
        float((relative < 0.005).mean()),
        _ulp(bench, target, dtype),
        first,
        other,
        other_bits,
    )


def _cosine(a: Any, b: Any) -> float | None:
    norms = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    return float(np.dot(a / norms[0], b / norms[1])) if all(norms) else None


def _ulp(bench: Any, target: Any, dtype: str) -> int | None:
    """Return the most steps between two elements, counted in representable numbers of the dtype."""
    if dtype == "bfloat16":
        bits, shift = 32, 16
    elif dtype in ULP_BITS and str(bench.dtype) == str(target.dtype) == dtype:
        bits, shift = ULP_BITS[dtype], 0
    else:
        return None
    if bench.dtype.itemsize * 8 != bits or target.dtype.itemsize * 8 != bits:
        return None
    finite = np.isfinite(bench) & np.isfinite(target)
    steps = []
    for side in (bench[finite], target[finite]):
        raw = (
            np.ascontiguousarray(side)
            .view(f"<i{bits // 8}")
            .astype(object if bits == 64 else "<i8")
        )
        magnitude = raw & ((1 << (bits - 1)) - 1)
        steps.append(np.where(raw < 0, -magnitude, magnitude) >> shift)
    return int(np.abs(steps[0] - steps[1]).max()) if finite.any() else 0
