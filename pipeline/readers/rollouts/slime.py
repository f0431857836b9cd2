"""slime: `rollout_data/{id}.pt` of the engine and `train_data/{id}.pt` of the trainer.

Samples are ragged lists; a sample's id is `index` in the one and `sample_index` in the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .batch import dict_values, numbers
from .part import Value, ragged_value


def recognises(content: Any) -> bool:
    """Tell whether this is a dump of slime."""
    return isinstance(content, dict) and "rollout_id" in content and "samples" in content


def values(content: dict[str, Any]) -> list[Value]:
    """Return the samples, in their order."""
    samples = content["samples"]
    samples = list(samples.values()) if isinstance(samples, dict) else list(samples)
    if not samples:
        return []
    names = dict.fromkeys(name for sample in samples for name in sample)
    columns = {name: [sample.get(name) for sample in samples] for name in names}
    known = {name: column for name, column in columns.items() if column[0] is not None}
    index = known.pop("sample_index", None) or known.pop("index", None)
    counts = known.pop("response_length", None) or known.pop("response_lengths", [])
    lengths = [int(numbers(count)) for count in counts]
    tokens = [numbers(row) for row in known.pop("tokens", [])]
    known |= {"reward": raw} if (raw := _raw_rewards(content, index, len(samples))) else {}
    found = dict_values(known, {"rewards": "normalised_reward"})
    if index is not None:
        found += dict_values({"uid": np.array([int(numbers(one)) for one in index])})
    if tokens and lengths:
        split = [len(row) - n for row, n in zip(tokens, lengths, strict=True)]
        prompts = [row[:at] for row, at in zip(tokens, split, strict=True)]
        responses = [row[at:] for row, at in zip(tokens, split, strict=True)]
        found.append(ragged_value(0, "prompt_ids", prompts))
        found.append(ragged_value(0, "response_ids", responses))
    return [_mask(value) for value in found]


def _raw_rewards(content: dict[str, Any], index: Any, size: int) -> list[float] | None:
    """Return what the reward function gave; a train dump's own `rewards` are normalised."""
    raw = content.get("raw_reward")
    if raw is None or index is None or len(raw) != size:
        return None
    order = np.argsort(np.argsort([int(numbers(one)) for one in index]))
    return [float(numbers(raw[place])) for place in order]


def _mask(value: Value) -> Value:
    if value.key != "loss_mask":
        return value
    return Value(0, "response_mask", "", value.dtype, value.shape, value.array, value.lengths)
