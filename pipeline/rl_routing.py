"""Mixture of experts: where both sides sent a position to other experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rl_layout import Array
from .rl_pairs import Aligned

KEY = "routed_experts"


def routing(aligned: Aligned) -> tuple[Array | None, dict[str, Any]]:
    """Return which tokens were predicted from a position with other experts, and counts.

    The key holds [n, prompt + response, layers, experts], or [n, response, ...]; the order of the
    experts of one layer means nothing; negative: none recorded. Position t predicts token t + 1.
    """
    if not (aligned.a.has(KEY) and aligned.b.has(KEY)):
        return None, {}
    a, b = aligned.a.rows(KEY), aligned.b.rows(KEY)
    if a.ndim < 3 or a.shape != b.shape:
        return None, {}
    known = (a >= 0).all(axis=-1) & (b >= 0).all(axis=-1)
    other = (np.sort(a, axis=-1) != np.sort(b, axis=-1)).any(axis=-1) & known
    counts = {
        "routed": known.reshape(len(a), -1).sum(axis=1),
        "flipped": other.reshape(len(a), -1).sum(axis=1),
    }
    position = other.reshape(*other.shape[:2], -1).any(axis=-1)
    width = aligned.counted.shape[1]
    prompt = position.shape[1] - width
    if prompt > 0:
        return position[:, prompt - 1 : prompt - 1 + width], counts
    before = np.zeros((len(a), 1), dtype=bool)
    return np.concatenate([before, position[:, : width - 1]], axis=1), counts
