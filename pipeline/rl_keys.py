"""What the values of a key are: log-probs, inputs of a model, or numbers."""

from __future__ import annotations

import math

import numpy as np

from .readers.rollouts.names import LOG_PROBS
from .readers.rollouts.names import TOKENS as TOKEN_KEYS
from .rl_gap import Gap
from .rl_layout import Array
from .rl_pairs import Aligned

LAYOUT = frozenset(
    {"uid", "sample_index", "prompt_ids", "response_ids", "attention_mask", "response_mask"}
    | {"input_ids", "position_ids", "routed_experts"}
)
"""Keys that are compared as what they are, not as numbers."""
INPUTS = frozenset({"attention_mask", "input_ids", "position_ids"})
"""Those of them that a model is given beside prompt and response."""


def is_log_prob(name: str, aligned: Aligned, a: Array, b: Array) -> bool:
    """Tell whether these are log-probs of tokens; of a name that users gave, their values tell."""
    if a.ndim != 2 or b.ndim != 2:
        return False
    fits = min(a.shape[1], b.shape[1]) == aligned.counted.shape[1]
    return name in LOG_PROBS or (fits and not max(a.max(initial=0), b.max(initial=0)) > 0)


def is_input(key: str, aligned: Aligned, gap: Gap | None) -> bool:
    """Tell whether this tells something that prompts and responses do not; of equal padding."""
    told = all(side.prompt_fits is not None for side in (aligned.a, aligned.b))
    return key in INPUTS and gap is not None and not (key == "attention_mask" and told)


def looked_at(aligned: Aligned, key: str, shape: tuple[int, int]) -> Array:
    """Return which numbers count of a key with none for each token: of inputs, the attended."""
    found = np.ones(shape, dtype=bool)
    if key in INPUTS and key != "attention_mask":
        for side in (aligned.a, aligned.b):
            if side.has("attention_mask") and side.shape("attention_mask")[1:] == shape[1:]:
                found &= side.rows("attention_mask") != 0
    return found


def misfit(key: str, aligned: Aligned, a: Array, b: Array) -> bool:
    """Tell whether dimensions differ by more than padding."""
    if a.ndim != b.ndim:
        return math.prod(a.shape[1:]) != math.prod(b.shape[1:])
    ragged = any(side.has(key) and side.lengths(key) is not None for side in (aligned.a, aligned.b))
    widths = {side.shape[1] for side in (a, b) if side.ndim > 1}
    per_token = ragged or key in LAYOUT or key in TOKEN_KEYS or aligned.counted.shape[1] in widths
    start = 2 if per_token else 1
    return a.shape[start:] != b.shape[start:]
