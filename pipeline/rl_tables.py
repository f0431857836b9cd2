"""The tables that tasks bring to the run's database: columns with their SQL types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SAMPLES = {
    "side": "VARCHAR",
    "part": "BIGINT",
    "step": "BIGINT",
    "rank": "BIGINT",
    "micro": "BIGINT",
    "place": "BIGINT",  # row in its batch
    "uid": "VARCHAR",
    "sample": "BIGINT",
    "prompt": "UBIGINT",  # digest of the ids without padding
    "response": "UBIGINT",
    "prompt_text": "UBIGINT",
    "response_text": "UBIGINT",
    "tokens": "BIGINT",  # real ones of the response; NULL: not known
    "counted": "BIGINT",  # by the mask; NULL: no mask
}
"""One row per sample of either side."""

KEYS = {"side": "VARCHAR", "part": "BIGINT", "step": "BIGINT", "rank": "BIGINT", "key": "VARCHAR"}
"""One row per key of a part of either side."""

PAIR_FACTS = {
    "pair": "BIGINT",
    "tokens_a": "BIGINT",
    "tokens_b": "BIGINT",
    "first_difference": "BIGINT",  # first token whose ids differ; NULL: none
    "prefix": "BOOLEAN",  # one side's ids go on where the other's end
    "end_a": "BIGINT",  # last real id
    "end_b": "BIGINT",
    "mask_differs": "BIGINT",  # tokens that one mask alone counts; NULL: a mask is missing
    "mask_first": "BIGINT",
    "mask_a": "BIGINT",  # tokens that it counts
    "mask_b": "BIGINT",
    "mask_shift": "BIGINT",  # b's mask is a's, moved right by this; 0: it is not
    "mask_a_all": "BOOLEAN",  # it counts every real token: as attention does
    "mask_b_all": "BOOLEAN",
    "prompt_differs": "BOOLEAN",
    "prompt_moved": "BOOLEAN",  # the same ids stand elsewhere between the padding
    "fits_a": "BOOLEAN",  # attention sees just the prompt's tokens; NULL: not known
    "fits_b": "BOOLEAN",
    "routed": "BIGINT",  # expert sets that both sides recorded
    "flipped": "BIGINT",  # of these, other ones
}
"""One row per pair of samples: what of ids, masks, layout and routing differs."""

PAIR_VALUES = {
    "key": "VARCHAR",
    "pair": "BIGINT",
    "n": "BIGINT",  # numbers that count and are finite on both sides
    "sum": "DOUBLE",  # of b - a
    "sum_abs": "DOUBLE",
    "max_abs": "DOUBLE",
    "max_token": "BIGINT",
    "differ": "BIGINT",
    "off": "BIGINT",  # further apart than rounding explains
    "nan_a": "BIGINT",  # not finite where they count
    "nan_b": "BIGINT",
    "hidden_a": "BIGINT",  # not finite elsewhere
    "hidden_b": "BIGINT",
    "length_a": "BIGINT",  # of a ragged row whose length is not that of the ids; NULL: it fits
    "length_b": "BIGINT",
    "sum_ratio": "DOUBLE",  # of exp(b - a) - 1; up to `clipped` of log-probs only
    "sum_k2": "DOUBLE",
    "sum_k3": "DOUBLE",
    "clipped": "BIGINT",  # ratios outside of 0.8 to 1.2
    "sum_a": "DOUBLE",  # of log-probs, and where a sample has one number
    "sum_b": "DOUBLE",
    "sum_aa": "DOUBLE",
    "sum_bb": "DOUBLE",
    "sum_ab": "DOUBLE",
}
"""One row per pair of samples and key: sums over the numbers that count."""

ARRAYS = {
    "key": "VARCHAR",
    "name": "VARCHAR",  # as the user of A called it
    "step": "BIGINT",
    "rank": "BIGINT",
    "micro": "BIGINT",
    "entry": "VARCHAR",
    "of_samples": "BOOLEAN",
    "dtype_1": "VARCHAR",
    "dtype_2": "VARCHAR",
    "shape_1": "BIGINT[]",
    "shape_2": "BIGINT[]",
    "equal": "BIGINT",
    "total": "BIGINT",
    "first": "BIGINT",
    "max_abs": "DOUBLE",
    "max_rel": "DOUBLE",
    "within_3": "BIGINT",
    "within_2": "BIGINT",
    "nan_1": "BIGINT",
    "nan_2": "BIGINT",
    "value_1": "DOUBLE",  # of a 0-d value
    "value_2": "DOUBLE",
    "counted": "BIGINT",  # tokens that count in its batch
    "whole": "BOOLEAN",  # of no samples: whole numbers, which are not rounded
    "misfit": "BOOLEAN",  # of samples: other dimensions than that of tokens differ
    "samples": "BIGINT",
    "same_samples": "BOOLEAN",  # both sides' batches hold the same ones
}
"""One row per value of A: how it differs as a whole from what stands there in B."""

TOKENS = {
    "key": "VARCHAR",
    "pair": "BIGINT",
    "step": "BIGINT",
    "rank": "BIGINT",
    "token": "BIGINT",
    "id": "BIGINT",
    "context": "UBIGINT",  # of prompt and prefix
    "a": "DOUBLE",
    "b": "DOUBLE",
    "flipped": "BOOLEAN",  # the position that predicts it took other experts
}
"""One row per token that counts, of all samples or of an even choice of them, and log-prob key."""

SHOWN_TOKENS = {
    "key": "VARCHAR",
    "pair": "BIGINT",
    "in_prompt": "BOOLEAN",
    "token": "BIGINT",
    "id_a": "BIGINT",
    "id_b": "BIGINT",
    "log_prob_a": "DOUBLE",
    "log_prob_b": "DOUBLE",
    "counted_a": "BOOLEAN",
    "counted_b": "BOOLEAN",
}
"""One row per token of the worst samples, counted or not."""

_KINDS = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "UBIGINT": pa.uint64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BIGINT[]": pa.list_(pa.int64()),
}


Nullable = tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]
"""Numbers, and where they are NULL instead."""


class Rows:
    """Rows of one table: taken block by block, made Arrow rows once, since each start costs.

    Args:
        columns: column -> SQL type.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._blocks: list[Mapping[str, Any]] = []
        self._sizes: list[int] = []

    def add(self, content: Mapping[str, Any]) -> None:
        """Take some rows; a column that is missing or None is NULL throughout.

        A single text or number stands for all rows.
        """
        size = next(len(c) for c in content.values() if isinstance(c, (np.ndarray, list)))
        if size:
            self._blocks.append(content)
            self._sizes.append(size)

    def table(self) -> pa.Table:
        """Return what was taken."""
        columns = [self._column(name, _KINDS[kind]) for name, kind in self._columns.items()]
        return pa.Table.from_arrays(columns, names=list(self._columns))

    def _column(self, name: str, arrow: pa.DataType) -> pa.Array:
        parts: list[Any] = [block.get(name) for block in self._blocks]
        kinds = {type(part) for part in parts}
        if kinds <= {type(None)}:
            return pa.nulls(sum(self._sizes), arrow)
        if kinds == {np.ndarray}:
            return pa.array(_concatenated(parts, arrow), arrow)
        if list in kinds:
            whole = zip(parts, self._sizes, strict=True)
            return pa.array([one for part, size in whole for one in part or [None] * size], arrow)
        if not kinds & {np.ndarray, tuple}:
            repeated = (
                pa.repeat(pa.scalar(part, arrow), size)
                for part, size in zip(parts, self._sizes, strict=True)
            )
            return pa.concat_arrays(repeated)
        return self._numbers(parts, arrow)

    def _numbers(self, parts: list[Any], arrow: pa.DataType) -> pa.Array:
        """Return a column of arrays, some of them Nullable, or missing."""
        data, nulls = [], []
        for part, size in zip(parts, self._sizes, strict=True):
            numbers, absent = part if isinstance(part, tuple) else (part, part is None)
            data.append(np.zeros(size, bool) if numbers is None else numbers)
            nulls.append(absent)
        mask = np.empty(sum(self._sizes), bool)
        ends = np.cumsum(self._sizes).tolist()
        for absent, start, end in zip(nulls, (0, *ends), ends, strict=False):
            mask[start:end] = absent
        return pa.array(_concatenated(data, arrow), arrow, mask=mask, from_pandas=False)


def _concatenated(parts: list[npt.NDArray[Any]], arrow: pa.DataType) -> npt.NDArray[Any]:
    return np.concatenate(parts, dtype=arrow.to_pandas_dtype(), casting="unsafe")
