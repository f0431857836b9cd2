"""The tensors of one rank's records, as a table: column by column, as there are millions of them.

Max and Min decide what a tensor holds: Norm and Mean overflow alone and are no evidence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf, nan
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collectors.schema import FLOAT_LIMIT, TENSORS, TEXT, table

from .values import Leaf

Numbers: TypeAlias = npt.NDArray[np.float64]
Marks: TypeAlias = npt.NDArray[np.bool_]

STATISTICS = ("Max", "Min", "Mean", "Norm")
RECORDED = pa.struct(
    [
        ("dtype", TEXT),
        ("shape", pa.list_(pa.int64())),
        *((name, pa.float64()) for name in STATISTICS),
        ("md5", pa.string()),
        ("requires_grad", pa.bool_()),
        ("data_name", pa.string()),
    ]
)
LAYOUT = ("device_mesh", "placements", "hsdp_shard_size")
_LAYOUT_KEYS = frozenset(LAYOUT)


class Tensors:
    """The tensors of one rank while its records are read.

    `counts` says how many each call has. `roles` has the rows that are of communication, `overflow`
    those of which the record says whether they hold a NaN or an infinity.
    """

    def __init__(self) -> None:
        self.found: list[Leaf] = []
        self.counts: list[int] = []
        self.roles: dict[int, str] = {}
        self.overflow: dict[int, bool] = {}

    def table(self) -> pa.Table:
        """Return the rows so far."""
        items = [item for _, item in self.found]
        recorded = _recorded(items)
        slots = pa.array([slot for slot, _ in self.found], TEXT)
        dtypes = _renamed(recorded.field("dtype"), _short_dtype)
        limits = np.array([FLOAT_LIMIT.get(dtype, nan) for dtype in dtypes.dictionary.to_pylist()])
        limits = limits[dtypes.indices.to_numpy()]
        roles = ["value"] * len(items)
        for row, role in self.roles.items():
            roles[row] = role
        columns = {
            "seq": pa.array(np.repeat(np.arange(len(self.counts)), self.counts)),
            "slot": slots,
            "direction": _renamed(slots, _direction),
            "role": roles,
            "dtype": dtypes,
            "shape": recorded.field("shape"),
            "numel": pa.array(_products(recorded.field("shape"))),
            **statistics(recorded, items, limits, self.overflow),
            "checksum": recorded.field("md5"),
            "requires_grad": recorded.field("requires_grad"),
            "layout": list(map(_layout, items)),
        }
        if recorded.field("data_name").null_count < len(items):
            columns["value_path"] = [_value_path(item.get("data_name")) for item in items]
        return table(TENSORS, columns, len(items))


def statistics(
    recorded: pa.StructArray,
    items: Sequence[Mapping[str, Any]],
    limits: Numbers,
    overflow: Mapping[int, bool],
) -> dict[str, pa.Array]:
    """Return the columns from max to norm, has_nan, has_posinf, has_neginf and saturated.

    max, min, mean and norm are over the finite elements; where msprobe did not leave these out, a
    non-finite statistic becomes NULL. A NaN hides infinities: has_posinf and has_neginf are then
    NULL, not false.

    Args:
        recorded: the items as Arrow has them.
        items: the recorded tensors.
        limits: the largest finite value of each one's dtype; NaN where it has none.
        overflow: row -> whether it holds a NaN or an infinity, by the word of its record.
    """
    (high, no_high), (low, no_low), (mean, _), (norm, _) = (
        _numbers(recorded.field(name)) for name in STATISTICS
    )
    finite, unknown = np.isfinite(high) & np.isfinite(low), no_high | no_low
    has_nan = ~unknown & (np.isnan(high) | np.isnan(low))
    has_posinf, has_neginf, unclear = high == inf, low == -inf, unknown | has_nan
    saturated = (high == limits) | (low == -limits)
    rows = np.flatnonzero(~unknown & ~finite)
    high[rows] = _spared(items, rows, "Max")
    low[rows] = _spared(items, rows, "Min")
    no_high[rows], no_low[rows] = np.isnan(high[rows]), np.isnan(low[rows])
    for row, holds in overflow.items():
        if unknown[row]:
            has_nan[row], unknown[row] = holds, False
    return {
        "max": pa.array(high, mask=no_high),
        "min": pa.array(low, mask=no_low),
        "mean": pa.array(mean, mask=~np.isfinite(mean)),
        "norm": pa.array(norm, mask=~np.isfinite(norm)),
        "has_nan": pa.array(has_nan, mask=unknown),
        "has_posinf": pa.array(has_posinf, mask=unclear),
        "has_neginf": pa.array(has_neginf, mask=unclear),
        "saturated": pa.array(saturated, mask=~finite | np.isnan(limits)),
    }


def _recorded(items: Sequence[Mapping[str, Any]]) -> pa.StructArray:
    """Return what is recorded of tensors: as it stands, and otherwise item by item."""
    with suppress(pa.ArrowException, OverflowError):
        recorded = pa.array(items, RECORDED)
        if not recorded.field("dtype").null_count + recorded.field("shape").null_count:
            return recorded
    plain = [
        {
            **item,
            "dtype": str(item["dtype"]),
            "shape": item["shape"] or [],
            **{name: _number(item.get(name)) for name in STATISTICS},
        }
        for item in items
    ]
    return pa.array(plain, RECORDED)


def _renamed(texts: pa.DictionaryArray, rename: Callable[[str], str]) -> pa.DictionaryArray:
    """Return texts under other names; several may get the same one."""
    names = list(map(rename, texts.dictionary.to_pylist()))
    distinct = list(dict.fromkeys(names))
    places = np.array([distinct.index(name) for name in names], np.int32)
    codes = places[texts.indices.to_numpy()]
    return pa.DictionaryArray.from_arrays(codes, pa.array(distinct, pa.string()))


def _short_dtype(dtype: str) -> str:
    """Return `float32` for torch.float32, Float32 or mindspore.float32."""
    return dtype.rpartition(".")[2].lower()


def _direction(slot: str) -> str:
    """Return `parameter` for parameters.weight."""
    first = slot.partition(".")[0]
    return "parameter" if first == "parameters" else first


def _products(lists: pa.ListArray) -> npt.NDArray[np.int64]:
    """Return the product of each list."""
    values, offsets = lists.values.to_numpy(), lists.offsets.to_numpy()
    products = np.ones(len(lists), np.int64)
    for axis in range(np.diff(offsets).max(initial=0)):
        inside = offsets[:-1] + axis < offsets[1:]
        products[inside] *= values[offsets[:-1][inside] + axis]
    return products


def _numbers(column: pa.Array) -> tuple[Numbers, Marks]:
    """Return numbers and where there is none, NaN in its place."""
    none = np.zeros(len(column), bool)
    if column.null_count:
        valid = np.frombuffer(column.buffers()[0], np.uint8)
        none = ~np.unpackbits(valid, count=len(column), bitorder="little").astype(bool)
    return column.to_numpy(zero_copy_only=False).copy(), none


def _spared(items: Sequence[Mapping[str, Any]], rows: npt.NDArray[np.intp], name: str) -> Numbers:
    """Return Max or Min of the finite elements alone, NaN where that was not recorded."""
    chosen = [items[row] for row in rows.tolist()]
    values = [_number(item.get(f"{name}_except_inf_nan", item[name])) for item in chosen]
    numbers = np.array(values, np.float64)
    return np.where(np.isfinite(numbers), numbers, nan)


def _number(value: Any) -> float | None:
    try:
        return None if value is None else float(value)  # "nan", "-Inf": spelled out by some
    except (TypeError, ValueError):
        return None


def _layout(item: Mapping[str, Any]) -> str | None:
    if _LAYOUT_KEYS.isdisjoint(item):
        return None
    return json.dumps({key: item[key] for key in LAYOUT if key in item})


def _value_path(saved: str | None) -> str | None:
    return f"dump_tensor_data/{saved}" if saved else None
