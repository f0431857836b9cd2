"""The tokens that rules look at one by one: all, or those of an even choice of samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .rl_batches import mix
from .rl_layout import Array
from .rl_pairs import Aligned


class Tokens:
    """What the tokens of some pairs share, whatever log-prob is looked at.

    Args:
        aligned: the pairs.
        share: of the pairs that are taken, 0 to 1; the choice is the same in every run.
        flips: which tokens were predicted from a position with other experts, [m, width].
    """

    def __init__(self, aligned: Aligned, share: float, flips: Array | None) -> None:
        self._aligned, self._flips = aligned, flips
        self._rows = np.flatnonzero((mix(aligned.pairs) >> np.uint64(11)) < share * 2**53)
        self._ids = None if aligned.ids is None else aligned.ids[self._rows]
        self._contexts = aligned.contexts(self._rows)

    def rows(self, place: Mapping[str, Any], a: Array, b: Array) -> dict[str, Any]:
        """Return the tokens that count and are finite on both sides.

        Args:
            place: key, step and rank.
            a: log-probs of one side, [m, width].
            b: of the other, [m, width].
        """
        rows, counted = self._rows, self._aligned.counted
        width = min(a.shape[1], b.shape[1], counted.shape[1], self._contexts.shape[1])
        x, y = a[rows, :width].astype(np.float64), b[rows, :width].astype(np.float64)
        row, token = np.nonzero(counted[rows, :width] & np.isfinite(x) & np.isfinite(y))
        return {
            **place,
            "pair": self._aligned.pairs[rows[row]],
            "token": token,
            "id": None if self._ids is None else self._ids[row, token].astype(np.int64),
            "context": self._contexts[row, token],
            "a": x[row, token],
            "b": y[row, token],
            "flipped": None if self._flips is None else self._flips[rows[row], token],
        }
