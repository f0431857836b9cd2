"""A dict of tensors, as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..checkpoint.saved_tensor import SavedTensor
from ..inert import Array as Pickled
from .names import canonical
from .part import Array, Value, number_value, ragged_value, text_value


def dict_values(batch: Mapping[str, Any], rename: Mapping[str, str] | None = None) -> list[Value]:
    """Return the tensors, arrays and lists of a dict; anything else is left out.

    Args:
        batch: name -> content.
        rename: name -> key, where the trainer's name means something else than elsewhere.
    """
    found = []
    for name, content in batch.items():
        content = _opened(content)
        text = is_text(content)
        key = (rename or {}).get(name) or canonical(name, text=text)
        value = _value(key, content, text)
        if value:
            found.append(value)
    return found


def numbers(content: Any) -> Array:
    """Return the elements of a tensor, an array or a list."""
    if isinstance(content, SavedTensor):
        return content.array()
    return np.asarray(_opened(content))


def _opened(content: Any) -> Any:
    """Return an array for one that was pickled; of Python objects as of numbers."""
    if not isinstance(content, Pickled):
        return content
    found = content.value
    if not isinstance(found, list):
        return found
    objects = np.empty(len(found), dtype=object)
    objects[:] = found
    return objects.reshape(content.shape)


def is_text(content: Any) -> bool:
    """Tell whether a list or array holds texts."""
    flat = isinstance(content, list) or (isinstance(content, np.ndarray) and content.ndim == 1)
    return flat and len(content) > 0 and all(isinstance(one, str) for one in content)


def _value(key: str, content: Any, text: bool) -> Value | None:
    if text:
        return text_value(0, key, [str(one) for one in content])
    if isinstance(content, SavedTensor):
        return Value(0, key, "", content.dtype, content.shape, content.array())
    if isinstance(content, (bool, int, float)):
        return number_value(0, key, content)
    if isinstance(content, np.ndarray) and content.dtype != object:
        return number_value(0, key, content)
    if isinstance(content, (list, np.ndarray)) and len(content):
        try:
            rows = [numbers(one) for one in content]
        except ValueError:  # lists in lists of different lengths
            return None
        if all(row.dtype.kind in "biuf" for row in rows):
            if all(row.ndim == 0 for row in rows):
                return number_value(0, key, np.array(rows))
            dtypes = {one.dtype for one in content if isinstance(one, SavedTensor)}
            return ragged_value(0, key, rows, dtypes.pop() if len(dtypes) == 1 else "")
    return None
