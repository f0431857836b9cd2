"""Reads safetensors: one file, shards with an index, and shards that each hold slices.

Eight bytes of header length, a JSON header with dtype, shape and place of each tensor, the data:
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ..dtypes import dtype_of
from ..errors import ReadError
from .contents import Contents, Problem
from .files import Files, InFile
from .tensors import Shape, Tensor, placed, whole

DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32",
    "U16": "uint16", "U8": "uint8", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
LONGEST_HEADER = 100_000_000
SHARDING = "DCP_SHARDING_INFO"
"""In the header's metadata, by torch's HuggingFaceStorageWriter: where each slice lies."""


def read_header(path: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors of a file, and the metadata of its header.

    Raises:
        ReadError: it is damaged or something else.
    """
    with Files() as files:
        mapped = files.bytes(path)
        size = len(mapped)
        length = int.from_bytes(mapped[:8], "little")
        if size < 8 or length > min(LONGEST_HEADER, size - 8):
            raise ReadError(f"{path} is cut off or no safetensors: its header does not fit")
        try:
            header = json.loads(mapped[8 : 8 + length])
            metadata = header.pop("__metadata__", {})
            found = {k: _tensor(path, 8 + length, size, v) for k, v in header.items()}
        except ReadError as error:
            raise ReadError(f"{path}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ReadError(f"{path}: its header cannot be read ({error})") from None
    return found, metadata


def _tensor(path: str, start: int, size: int, entry: dict[str, Any]) -> Tensor:
    dtype = DTYPES.get(entry["dtype"])
    if dtype is None:
        raise ReadError(f"its dtype {entry['dtype']} is not known")
    shape = tuple(int(n) for n in entry["shape"])
    begin, end = entry["data_offsets"]
    need = math.prod(shape) * dtype_of(dtype).itemsize
    if begin < 0 or end - begin != need or min(shape, default=0) < 0:
        raise ReadError("a tensor's place does not fit its shape")
    if start + end > size:
        raise ReadError("is cut off: a tensor reaches beyond its end")
    return whole(InFile(path, start + begin, dtype, shape), dtype)


def add_file(contents: Contents, path: Path, prefix: str = "") -> None:
    """Add the tensors of one file; note it when it cannot be read."""
    try:
        tensors, metadata = read_header(str(path))
    except ReadError as error:
        contents.unreadable(error)
        return
    if metadata.get("format") == "ms":
        contents.family = "mindspore"
    for name, tensor in tensors.items():
        contents.add_leaf(prefix + name, tensor)


def read_sliced(path: Path, shards: list[Path]) -> Contents:
    """Return shards that each hold slices; the whole shape is what they reach to."""
    contents = Contents(str(path), "safetensors slices", facts={"shards": len(shards)})
    parts: dict[str, list[tuple[Shape, Tensor]]] = {}
    for shard in shards:
        try:
            tensors, metadata = read_header(str(shard))
            places = json.loads(metadata[SHARDING])
            for name, tensor in tensors.items():
                start = tuple(places[name]["saved_offsets"]) if name in places else ()
                parts.setdefault(name, []).append((start or (0,) * len(tensor.shape), tensor))
        except ReadError as error:
            contents.unreadable(error)
        except (ValueError, KeyError, TypeError) as error:
            text = f"{shard}: where its slices lie cannot be read ({error})"
            contents.unreadable(ReadError(text))
    for name, pieces in parts.items():
        ends = [[s + n for s, n in zip(at, t.shape, strict=True)] for at, t in pieces]
        tensor = placed(tuple(map(max, *ends)) if len(ends) > 1 else tuple(ends[0]), pieces)
        if tensor.whole:
            contents.tensors[name] = tensor
        else:
            text = f"{path}: slices of {name} are missing or overlap"
            contents.problems.append(Problem("file_missing", text, (name,)))
    return contents


def is_sliced(path: Path) -> bool:
    """Tell whether a file holds slices of tensors."""
    try:
        return SHARDING in read_header(str(path))[1]
    except ReadError:
        return False
