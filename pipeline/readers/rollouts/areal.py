"""AReaL: a trajectory, a dict of tensors [B, T] over prompt and response.

`logprobs` and `loss_mask` stand at their token as long as advantages are not computed; then both
are rolled by -1, to the position that predicts it. `prox_logp` always stands there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .batch import dict_values, numbers
from .part import Array, Value
from .sequence import split_sequences

PREDICTING = {
    "prox_logp": "old_log_prob",
    "ref_logp": "ref_log_prob",
    "advantages": "advantages",
    "returns": "returns",
}


def recognises(content: Any) -> bool:
    """Tell whether this is a trajectory."""
    return isinstance(content, dict) and {"input_ids", "loss_mask", "logprobs"} <= set(content)


def values(content: dict[str, Any]) -> list[Value]:
    """Return the samples; everything a token has stands at its token."""
    batch = dict(content)
    ids, mask = numbers(batch.pop("input_ids")), numbers(batch.pop("loss_mask"))
    engine = numbers(batch.pop("logprobs"))
    if "advantages" in batch:
        mask, engine = _to_token(mask), _to_token(engine)
    tokens = {"rollout_log_prob": (engine, "")}
    for name, key in PREDICTING.items():
        if name in batch:
            tokens[key] = _to_token(numbers(batch.pop(name))), ""
    attention = batch.pop("attention_mask", None)
    real = None if attention is None else numbers(attention)
    return split_sequences(ids, mask, real, tokens) + dict_values(batch)


def _to_token(array: Array) -> Array:
    return np.roll(array, 1, axis=1)
