"""Cuts whole sequences [B, T] of prompt and response into the two."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .part import Array, Value, ragged_value


def split_sequences(
    ids: Array, mask: Array, attention: Array | None, tokens: Mapping[str, tuple[Array, str]]
) -> list[Value]:
    """Return prompt and response of each row, and what its response tokens have.

    Args:
        ids: token ids [B, T].
        mask: what counts, at the token [B, T]; the first one begins the response.
        attention: what is no padding [B, T]; None: everything up to the last that counts.
        tokens: key -> numbers at the token [B, T], and their dtype.
    """
    counted = mask.astype(bool)
    width = ids.shape[1]
    real = counted if attention is None else attention.astype(bool) | counted
    first = np.where(counted.any(1), counted.argmax(1), real.shape[1])
    last = np.where(real.any(1), width - real[:, ::-1].argmax(1), 0)
    start = (
        np.where(real.any(1), real.argmax(1), 0) if attention is not None else np.zeros_like(first)
    )
    spans = list(zip(first, np.maximum(first, last), strict=True))
    found = [
        ragged_value(0, "response_ids", [row[a:b] for row, (a, b) in zip(ids, spans, strict=True)])
    ]
    if attention is not None:
        prompts = [row[a:b] for row, a, b in zip(ids, start, first, strict=True)]
        found.append(ragged_value(0, "prompt_ids", prompts))
    for key, (array, dtype) in {"response_mask": (mask, str(mask.dtype)), **tokens}.items():
        rows = [row[a:b] for row, (a, b) in zip(array, spans, strict=True)]
        found.append(ragged_value(0, key, rows, dtype))
    return found
