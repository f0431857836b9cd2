"""Takes the values of a record apart into tensors and arguments.

A tensor is an object with `dtype` and `shape`, anywhere in nested lists and objects, also inside a
P2POp.
"""

from __future__ import annotations

import json
from functools import lru_cache
from math import isfinite
from typing import Any

_ENCODE = json.JSONEncoder(separators=(",", ":")).encode

Leaf = tuple[str, Any]
"""Slot and item."""


def leaves(value: Any, slot: str, tensors: list[Leaf], others: list[Leaf]) -> None:
    """Append everything inside a recorded value to `tensors` and `others`, in order.

    A P2POp gives itself and its tensor, both under the slot of the operation.
    """
    if isinstance(value, list):
        for place, part in zip(_places(slot, len(value)), value, strict=True):
            if isinstance(part, dict) and "dtype" in part and "shape" in part:  # nearly always
                tensors.append((place, part))
            else:
                leaves(part, place, tensors, others)
    elif not isinstance(value, dict):
        others.append((slot, value))
    elif "dtype" in value and "shape" in value:
        tensors.append((slot, value))
    elif "class_type" in value and "tensor" in value:
        others.append((slot, {k: v for k, v in value.items() if k != "tensor"}))
        if isinstance(value["tensor"], dict):
            tensors.append((slot, value["tensor"]))
    elif "type" in value:
        others.append((slot, value))
    else:
        for key, part in value.items():
            leaves(part, f"{slot}.{key}", tensors, others)


@lru_cache(maxsize=128)
def _places(slot: str, count: int) -> list[str]:
    return [f"{slot}.{place}" for place in range(count)]


def arguments(items: dict[str, Any]) -> str | None:
    """Return slot -> argument as strict JSON, non-finite numbers spelled "inf", "-inf", "nan"."""
    if not items:
        return None
    text = _ENCODE(items)
    return _ENCODE(_spell(items)) if "NaN" in text or "Infinity" in text else text


def _spell(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _spell(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_spell(part) for part in value]
    return value
