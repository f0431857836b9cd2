"""Writes RL data in the folders of msprobe's SingleSave: one float32 .npy and .json a value.

    data/{key}/step{S}/rank{R}/micro_step{M}/{key}.npy, {key}.{i}.npy, {key}.{name}.npy

The .npy format is NumPy's, version 1.0 (numpy.lib.format).
"""

from __future__ import annotations

import json
import math
from array import array
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from .rollout_values import Row


def write_folder(dump: Path, step: tuple[int, int], row: Row) -> None:
    """Write one value; texts and ragged lists, which these folders cannot hold, are left out."""
    if row["dtype"] == "text" or row.get("shape") is None:
        return
    key, entry = row["key"], row["entry"]
    place = f"step{step[0]}/rank{step[1]}/micro_step{row['micro_step']}"
    folder = dump / "data" / key / place
    folder.mkdir(parents=True, exist_ok=True)
    name = key if entry is None else f"{key}.{entry}"
    numbers = _floats(row["data"], row["dtype"])
    (folder / f"{name}.npy").write_bytes(_npy(numbers, row["shape"]))
    (folder / f"{name}.json").write_text(json.dumps({"data": _statistics(numbers, row["shape"])}))


def _floats(data: bytes, dtype: str) -> pa.Array:
    """Return numbers as float32, which is all that these folders hold."""
    if dtype == "bfloat16":
        data, dtype = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)), "float32"
    kinds = {"bool": pa.uint8(), "float16": pa.float16(), "float32": pa.float32()}
    kind = kinds.get(dtype) or pa.type_for_alias(dtype)
    size = len(data) * 8 // kind.bit_width
    numbers = pa.Array.from_buffers(kind, size, [None, pa.py_buffer(data)])
    return numbers.cast(pa.float32(), safe=False)


def _npy(numbers: pa.Array, shape: list[int]) -> bytes:
    size = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {size}, }}"
    filled = head.ljust(-(-(len(head) + 11) // 64) * 64 - 11) + "\n"
    data = array("f", numbers.to_pylist()).tobytes()
    return b"\x93NUMPY\x01\x00" + len(filled).to_bytes(2, "little") + filled.encode() + data


def _statistics(numbers: pa.Array, shape: list[int]) -> dict[str, object]:
    """Return what msprobe writes beside each value; an empty one has no numbers."""
    if not len(numbers):
        return {"max": None, "min": None, "mean": None, "norm": None, "shape": shape}
    wide = numbers.cast(pa.float64())
    bad = pc.any(pc.is_nan(wide)).as_py()
    norm = math.sqrt(pc.sum(pc.multiply(wide, wide)).as_py())
    return {
        "max": math.nan if bad else pc.max(wide).as_py(),
        "min": math.nan if bad else pc.min(wide).as_py(),
        "mean": pc.mean(wide).as_py(),
        "norm": norm,
        "shape": shape,
    }
