"""Turns the values of a record into tensor rows and arguments.

A tensor is an object with `dtype` and `shape`, anywhere in nested lists and objects, also inside a
P2POp. Max and Min decide what a tensor holds: Norm and Mean overflow alone and are no evidence.
"""

from __future__ import annotations

import json
from functools import cache
from math import inf, isfinite, isnan
from typing import Any

from collectors.schema import FLOAT_LIMIT

_ENCODE = json.JSONEncoder(separators=(",", ":")).encode

STATISTICS = ("max", "min", "mean", "norm", "has_nan", "has_posinf", "has_neginf", "saturated")


Leaf = tuple[str, Any, bool]
"""Slot, item, and whether the item is a tensor."""


def leaves(value: Any, slot: str, found: list[Leaf]) -> None:
    """Append everything inside a recorded value to `found`, in order.

    A P2POp gives itself and then its tensor, both under the slot of the operation.
    """
    if isinstance(value, dict):
        if "dtype" in value and "shape" in value:
            found.append((slot, value, True))
        elif "class_type" in value and "tensor" in value:
            found.append((slot, {k: v for k, v in value.items() if k != "tensor"}, False))
            if isinstance(value["tensor"], dict):
                found.append((slot, value["tensor"], True))
        elif "type" in value:
            found.append((slot, value, False))
        else:
            for key, part in value.items():
                leaves(part, f"{slot}.{key}", found)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            leaves(part, f"{slot}.{place}", found)
    else:
        found.append((slot, value, False))


@cache
def short_dtype(dtype: str) -> str:
    """Return `float32` for torch.float32, Float32 or mindspore.float32."""
    return dtype.rpartition(".")[2].lower()


def statistics(item: dict[str, Any], dtype: str) -> tuple[Any, ...]:
    """Return the columns STATISTICS of one recorded tensor.

    max, min, mean and norm are over the finite elements; where msprobe did not leave these out, a
    non-finite statistic becomes NULL. A NaN hides infinities: has_posinf and has_neginf are then
    NULL, not false.
    """
    high, low = _number(item.get("Max")), _number(item.get("Min"))
    mean, norm = _finite(item.get("Mean")), _finite(item.get("Norm"))
    if high is None or low is None:
        return high, low, mean, norm, None, None, None, None
    if isfinite(high) and isfinite(low):
        limit = FLOAT_LIMIT.get(dtype)
        saturated = (high == limit or low == -limit) if limit else None
        return high, low, mean, norm, False, False, False, saturated
    finite_high = _finite(item.get("Max_except_inf_nan", high))
    finite_low = _finite(item.get("Min_except_inf_nan", low))
    if isnan(high) or isnan(low):
        return finite_high, finite_low, mean, norm, True, None, None, None
    return finite_high, finite_low, mean, norm, False, high == inf, low == -inf, None


def arguments(items: dict[str, Any]) -> str | None:
    """Return slot -> argument as strict JSON, non-finite numbers spelled "inf", "-inf", "nan"."""
    if not items:
        return None
    text = _ENCODE(items)
    return _ENCODE(_spell(items)) if "NaN" in text or "Infinity" in text else text


def _number(value: Any) -> float | None:
    if type(value) is float or value is None:
        return value
    if isinstance(value, int):
        return float(value)
    try:
        return float(value)  # "nan", "-Inf": spelled out by some producers
    except (TypeError, ValueError):
        return None


def _finite(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and isfinite(number) else None


def _spell(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _spell(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_spell(part) for part in value]
    return value
