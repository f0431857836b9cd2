"""What trainers hold, as key -> value: by the object's shape, none of them is imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .rollout_values import ValueKindError


def as_dict(data: Any) -> dict[str, Any]:
    """Return the values of a dict, a DataProto of verl, or an Experience of OpenRLHF, by name.

    Raises:
        ValueKindError: it is none of these, or a key is no text.
    """
    if isinstance(data, Mapping):
        named = dict(data)
    elif hasattr(data, "batch") and hasattr(data, "non_tensor_batch"):  # verl
        named = {**_texts(data.non_tensor_batch), **dict(data.batch.items())}
    elif hasattr(data, "sequences") and hasattr(data, "action_mask"):  # OpenRLHF
        named = {key: value for key, value in vars(data).items() if _is_value(value)}
    else:
        raise ValueKindError(
            f"data is a {type(data).__name__}; expected a dict, or a batch of verl, OpenRLHF or TRL"
        )
    wrong = [key for key in named if not isinstance(key, str)]
    if wrong:
        raise ValueKindError(f"the key {wrong[0]!r} is no text")
    return named


def _texts(beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands beside the tensors of a DataProto, as far as it is text or numbers."""
    kinds = (str, bool, int, float)
    return {
        key: list(column)
        for key, column in beside.items()
        if len(column) and all(isinstance(one, kinds) for one in column)
    }


def _is_value(value: Any) -> bool:
    array = hasattr(value, "dtype") and hasattr(value, "shape")
    return array or (
        isinstance(value, list) and all(isinstance(v, (str, int, float)) for v in value)
    )
