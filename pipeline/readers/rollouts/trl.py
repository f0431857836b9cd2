"""TRL: the inputs of the GRPO loss, a dict of tensors (TRL 1.16.0 `grpo_trainer.py`).

`tool_mask` leaves out what tools wrote; what counts is `completion_mask` times `tool_mask`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .batch import dict_values, numbers
from .part import Value, number_value


def recognises(content: Any) -> bool:
    """Tell whether these are inputs of a loss, or any dict of tensors with tokens in it."""
    return isinstance(content, dict) and bool(
        {"completion_ids", "responses", "response_ids"} & set(content)
    )


def values(content: dict[str, Any]) -> list[Value]:
    """Return the samples."""
    batch = dict(content)
    found = []
    if "completion_mask" in batch:
        mask = numbers(batch.pop("completion_mask"))
        prompt = batch.pop("prompt_mask", None)
        if prompt is not None:
            whole = np.concatenate([numbers(prompt), mask], axis=1)
            found.append(number_value(0, "attention_mask", whole))
        tools = numbers(batch.pop("tool_mask", np.ones_like(mask)))
        found.append(number_value(0, "response_mask", mask * tools))
    return found + dict_values(batch)
