"""The columns of a shard: one table of calls and one table of tensors for each step and rank.

This file is the only place where the columns stand; writer, readers and SQL follow it. NULL always
means "not recorded", never zero. `step` and `rank` are no columns: they come from the path.

A change that an older reader could misread raises SCHEMA_VERSION (in layout) and gets a view under
sql/schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())
"""Text that repeats a lot (call stacks, argument lists): stored once per part."""

CALLS = pa.schema(
    [
        ("seq", pa.int64()),  # the rank's own order; the key that tensors refer to
        ("name", pa.string()),  # "Functional.linear.12.forward", "Module.decoder.0.Mlp.forward.3"
        ("api", TEXT),  # "linear"; the class for a module
        ("call_index", pa.int64()),  # 12
        ("phase", TEXT),  # forward, backward, optimizer
        ("kind", TEXT),  # compute, comm, module, optimizer, saved
        ("module", TEXT),  # path of the enclosing module: "decoder.0"
        ("parent_seq", pa.int64()),  # the enclosing call
        ("stack", TEXT),  # frames, innermost first, one a line: "train.py:88 in step | x = f(y)"
        ("micro_step", pa.int64()),
        ("recompute", pa.bool_()),
        ("state", TEXT),  # ok, raised
        ("args", TEXT),  # JSON: slot -> non-tensor argument; non-finite numbers as "inf", "nan"
        # communication only
        ("group_id", TEXT),  # NULL: the default group
        ("group_ranks", pa.list_(pa.int64())),  # global ranks; NULL: not recorded
        ("group_seq", pa.int64()),  # this rank's running number in the group
        ("peer", pa.int64()),  # global rank at the other end of a send or receive
        ("root", pa.int64()),  # global rank that a broadcast, scatter, gather or reduce is about
        ("tag", pa.int64()),
        ("reduce_op", TEXT),  # SUM, MAX, ...; only where the operation reduces
        ("async", pa.bool_()),
    ]
)

TENSORS = pa.schema(
    [
        ("seq", pa.int64()),
        ("slot", TEXT),  # "input.0", "input.weight", "output.0.1", "parameters.weight"
        ("direction", TEXT),  # input, output, parameter, gradient
        ("role", TEXT),  # value; buffer (the call only writes into it); echo (an argument repeated
        # among the outputs, as msprobe does for communication)
        ("dtype", TEXT),  # short form: float32, bfloat16
        ("shape", pa.list_(pa.int64())),
        ("numel", pa.int64()),
        # over the finite elements, so never NaN or infinite themselves
        ("max", pa.float64()),
        ("min", pa.float64()),
        ("mean", pa.float64()),
        ("norm", pa.float64()),  # L2
        ("has_nan", pa.bool_()),
        ("has_posinf", pa.bool_()),
        ("has_neginf", pa.bool_()),
        ("nan_count", pa.int64()),
        ("posinf_count", pa.int64()),
        ("neginf_count", pa.int64()),
        ("zero_count", pa.int64()),
        ("saturated", pa.bool_()),  # an element stands exactly at the dtype's largest finite value
        ("checksum", pa.string()),
        ("requires_grad", pa.bool_()),
        ("layout", TEXT),  # JSON: DTensor mesh and placements
        ("value_id", pa.int64()),  # identity of this very value; NULL: lineage not recorded
        ("producer_seq", pa.int64()),  # the earlier call of this rank that made it; NULL beside a
        # value_id: no call on record made it
        ("producer_slot", TEXT),
        ("value_path", pa.string()),  # file under values/, relative to the shard
    ]
)

ROLLOUTS = pa.schema(
    [
        ("micro_step", pa.int64()),
        ("key", pa.string()),  # as the user called it: "log_prob"
        ("entry", pa.string()),  # place in a list, name in a dict; NULL for a tensor of its own
        ("dtype", pa.string()),  # as it was: float32, bfloat16, float8_e4m3fn, int64, bool, text
        ("shape", pa.list_(pa.int64())),  # NULL for a ragged list
        ("lengths", pa.list_(pa.int64())),  # of a ragged list of numbers: elements of each row
        ("data", pa.large_binary()),  # the elements, little-endian, in row-major order
        ("codec", pa.string()),  # what `data` is compressed with: lz4_raw; NULL: with nothing
        ("texts", pa.list_(pa.string())),
    ]
)
"""RL data: one row a value that was saved, whole, so that every bit of it survives."""

FLOAT_LIMIT = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}
"""Largest finite value by dtype (IEEE 754-2019; bfloat16 after Intel's numerics definition)."""


def table(
    schema: pa.Schema, columns: Mapping[str, Sequence[Any] | pa.Array], rows: int
) -> pa.Table:
    """Return columns as a table of a schema; a column that is not given is NULL in all rows."""
    arrays = []
    for field in schema:
        column = columns.get(field.name)
        if column is None:
            column = pa.nulls(rows, field.type)
        elif not isinstance(column, pa.Array):
            column = pa.array(column, field.type)
        arrays.append(column)
    return pa.Table.from_arrays(arrays, schema=schema)


class Rows:
    """Rows of one table under way: CALLS or TENSORS."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._rows: list[tuple[Any, ...]] = []
        self.add = self._rows.append
        """Append one row: a tuple with a value for each column, in their order."""

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> pa.Table:
        """Return the rows so far."""
        columns = dict(zip(self._schema.names, zip(*self._rows)))
        return table(self._schema, columns, len(self._rows))

    def clear(self) -> None:
        """Forget all rows."""
        self._rows.clear()
