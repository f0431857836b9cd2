"""Opens pickles and torch files without running anything that is in them.

A pickle names functions and classes and calls them. Here every name stands for an object that only
remembers what it was given; a handful that make arrays are built anew with NumPy.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .dtypes import STORAGES, decode
from .part import ReadError


class Inert:
    """An object of a class that is not loaded: its name, its arguments, its state.

    Whatever a pickle names becomes an empty subclass of this one.
    """

    name = ""
    args: tuple[Any, ...]
    state: Any
    items: dict[Any, Any]
    parts: list[Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Inert:
        """Remember the arguments; a pickle may or may not call `__init__`."""
        made = super().__new__(cls)
        made.args, made.state = (*args, *kwargs.values()), None
        made.items, made.parts = {}, []
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Inert:
        """Remember what it would have been called with."""
        return Inert(self, *args, **kwargs)

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[_hashable(key)] = value

    def append(self, part: Any) -> None:
        """Take an element, as a list would."""
        self.parts.append(part)

    def extend(self, parts: Any) -> None:
        """Take elements, as a list would."""
        self.parts += parts


class Tensor:
    """A tensor of a file: its dtype, and its elements in a dtype of NumPy that holds them."""

    def __init__(self, dtype: str, array: np.ndarray[Any, Any]) -> None:
        self.dtype, self.array = dtype, array


class _NumpyArray:
    """A NumPy array under way: `_reconstruct` makes it, its state fills it."""

    def __init__(self, *_: Any) -> None:
        self.array: np.ndarray[Any, Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, content = state
        self.array = _numpy(content, dtype, shape, "F" if fortran else "C")


def _from_buffer(content: Any, dtype: Any, shape: Any, order: str) -> _NumpyArray:
    made = _NumpyArray()
    made.array = _numpy(content, dtype, shape, order)
    return made


def _numpy(content: Any, dtype: Any, shape: Any, order: str) -> np.ndarray[Any, Any]:
    code = dtype.args[0] if isinstance(dtype, Inert) else "O"
    if isinstance(content, list) or str(code).startswith("O"):
        array = np.empty(len(content), dtype=object)
        array[:] = content
        return array.reshape(shape)
    kind = np.dtype(str(code))
    if isinstance(dtype.state, tuple) and dtype.state[1] == ">":
        kind = kind.newbyteorder(">")
    return np.frombuffer(content, kind).reshape(tuple(shape), order="F" if order == "F" else "C")


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *_: Any) -> Tensor:
    dtype, content = storage
    array = decode(content, dtype)
    strides = tuple(step * array.itemsize for step in stride)
    last = offset + sum(step * (n - 1) for step, n in zip(stride, size, strict=True))
    if min(size, default=1) > 0 and not 0 <= last < len(array):
        raise pickle.UnpicklingError("a tensor reaches beyond its storage")
    view = np.lib.stride_tricks.as_strided(array[offset:], tuple(size), strides, writeable=False)
    return Tensor(dtype, np.ascontiguousarray(view).reshape(tuple(size)))


_ARRAYS: dict[str, Callable[..., Any]] = {
    "collections.OrderedDict": OrderedDict,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch.Size": tuple,
    "numpy._core.multiarray._reconstruct": _NumpyArray,
    "numpy.core.multiarray._reconstruct": _NumpyArray,
    "numpy._core.numeric._frombuffer": _from_buffer,
    "numpy.core.numeric._frombuffer": _from_buffer,
}


class _Reader(pickle.Unpickler):
    def __init__(self, file: BinaryIO, storages: Callable[[str], bytes]) -> None:
        super().__init__(file)
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        return _ARRAYS.get(full) or type(name, (Inert,), {"name": full})

    def persistent_load(self, pid: Any) -> Any:
        if not isinstance(pid, tuple) or len(pid) < 3 or pid[0] != "storage":
            raise pickle.UnpicklingError(f"unknown reference {pid!r}")
        kind = getattr(pid[1], "name", "").removeprefix("torch.")
        return STORAGES.get(kind, "uint8"), self._storages(str(pid[2]))


def open_inert(file: Path) -> Any:
    """Return what a pickle or a torch file holds: containers, numbers, texts, arrays, Inert.

    Raises:
        ReadError: it is damaged, or no pickle.
    """
    try:
        return _load(file.read_bytes())
    except ReadError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise ReadError(
            f"{file} cannot be read ({type(error).__name__}: {error}); expected a file of "
            "torch.save or pickle; write it again"
        ) from None


def open_inert_bytes(content: bytes) -> Any:
    """Return what a pickle or a torch file inside of another holds."""
    return _load(content)


def _load(content: bytes) -> Any:
    if not content.startswith(b"PK\x03\x04"):
        return _plain(_Reader(io.BytesIO(content), lambda _: b"").load())
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("data.pkl"))
        folder = name.removesuffix("data.pkl")
        reader = _Reader(
            io.BytesIO(archive.read(name)), lambda key: archive.read(f"{folder}data/{key}")
        )
        return _plain(reader.load())


def _plain(content: Any) -> Any:
    """Return containers with arrays instead of what they were made of."""
    if isinstance(content, _NumpyArray):
        return _plain(content.array) if content.array.dtype == object else content.array
    if isinstance(content, np.ndarray) and content.dtype == object:
        flat = np.empty(content.size, dtype=object)
        flat[:] = [_plain(one) for one in content.reshape(-1)]
        return flat.reshape(content.shape)
    if isinstance(content, Mapping):
        return {_hashable(key): _plain(one) for key, one in content.items()}
    if isinstance(content, (list, tuple)):
        return type(content)(_plain(one) for one in content)
    if isinstance(content, Inert):
        content.state = _plain(content.state)
        content.args = _plain(content.args)
        content.items = _plain(content.items)
    return content


def _hashable(key: Any) -> Any:
    try:
        hash(key)
    except TypeError:
        return repr(key)
    return key
