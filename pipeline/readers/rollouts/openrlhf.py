"""OpenRLHF: an `Experience`, saved as a dict by its user.

`action_mask` and the log-probs are cut by one in front: index t speaks of token t + 1 of
`sequences` [B, T].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checkpoint.saved_tensor import SavedTensor
from ..inert import Record
from .batch import dict_values, numbers
from .part import Array, Value
from .sequence import split_sequences

TOKENS = {
    "action_log_probs": "old_log_prob",
    "base_action_log_probs": "ref_log_prob",
    "rollout_log_probs": "rollout_log_prob",
    "advantages": "advantages",
    "returns": "returns",
    "values": "values",
    "kl": "kl",
}


def recognises(content: Any) -> bool:
    """Tell whether this is an Experience, as a dict or as the object."""
    return {"sequences", "action_mask"} <= set(_fields(content))


def values(content: Any) -> list[Value]:
    """Return the samples; everything a token has stands at its token."""
    fields = dict(_fields(content))
    ids = numbers(fields.pop("sequences"))
    mask = _at_token(numbers(fields.pop("action_mask")), ids.shape[1])
    attention = fields.pop("attention_mask", None)
    tokens = {}
    for name, key in TOKENS.items():
        one = fields.get(name)
        if one is not None and numbers(one).ndim == 2:
            dtype = one.dtype if isinstance(one, SavedTensor) else ""
            tokens[key] = _at_token(numbers(fields.pop(name)), ids.shape[1]), dtype
    if "index" in fields:
        fields["uid"] = fields.pop("index")
    real = None if attention is None else numbers(attention)
    return split_sequences(ids, mask, real, tokens) + dict_values(fields)


def _at_token(array: Array, width: int) -> Array:
    return np.pad(array, ((0, 0), (width - array.shape[1], 0)))


def _fields(content: Any) -> dict[str, Any]:
    if isinstance(content, Record):
        return content.fields
    return content if isinstance(content, dict) else {}
