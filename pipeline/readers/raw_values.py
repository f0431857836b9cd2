"""Reads the elements of one saved tensor: `.npy`, and `.pt` as torch.save writes it.

A `.pt` file holds a pickle. It is read with the only two things that a plain tensor needs, and
nothing else in it is ever looked up or called.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

STORAGES = {
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "?",
}
"""Class of torch -> numpy's name of the dtype of its elements."""


class ValuesError(ValueError):
    """A file is no tensor that can be read without running what it holds."""


class _Storage(NamedTuple):
    dtype: str
    key: str


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def read_values(path: Path) -> Any:
    """Return the elements of a saved tensor as an array; bfloat16 becomes float32.

    Raises:
        ValuesError: the file is missing, broken, or more than a plain tensor.
    """
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        with zipfile.ZipFile(path) as archive:
            return _from_archive(archive)
    except ValuesError:
        raise
    except Exception as error:  # whatever a broken file makes these libraries raise
        raise ValuesError(f"{path.name} cannot be read: {error}") from None


def _from_archive(archive: zipfile.ZipFile) -> Any:
    (record,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
    tensor = _Unpickler(io.BytesIO(archive.read(record))).load()
    if not isinstance(tensor, _Tensor):
        raise ValuesError(f"{archive.filename} holds {type(tensor).__name__}, not a tensor")
    content = archive.read(f"{record.removesuffix('data.pkl')}data/{tensor.storage.key}")
    if tensor.storage.dtype == "bfloat16":
        halves = np.frombuffer(content, "<u2").astype("<u4")
        elements: Any = (halves << 16).view("<f4")
    else:
        elements = np.frombuffer(content, tensor.storage.dtype)
    size = elements.itemsize
    last = tensor.offset + sum(
        (n - 1) * s for n, s in zip(tensor.shape, tensor.stride, strict=True)
    )
    if 0 not in tensor.shape and not 0 <= last < len(elements):
        raise ValuesError(f"{archive.filename} reaches beyond its storage")
    return np.lib.stride_tricks.as_strided(
        elements[tensor.offset :], tensor.shape, [step * size for step in tensor.stride]
    )


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _rebuild_parameter
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        raise ValuesError(f"it asks for {module}.{name}, which no plain tensor needs")

    def persistent_load(self, pid: Any) -> _Storage:
        _, dtype, key, *_ = pid
        return _Storage(dtype, str(key))


def _rebuild(storage: _Storage, offset: int, shape: Any, stride: Any, *_: Any) -> _Tensor:
    return _Tensor(storage, int(offset), tuple(shape), tuple(stride))


def _rebuild_parameter(data: _Tensor, *_: Any) -> _Tensor:
    return data
