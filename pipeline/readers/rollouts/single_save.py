"""Reads the folders of `SingleSave`, msprobe's and ours: one .npy a value.

    data/{key}/step{S}/rank{R}/micro_step{M}/{key}.npy, {key}.{i}.npy, {key}.{name}.npy

`save_ex` without a micro step leaves `micro_step{M}` out; msprobe 8.3 wrote `{key}{i}.npy`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import read_array_header_1_0

from ..dtypes import Array
from ..errors import ReadError
from .names import canonical
from .part import Part, Value, wanted

MODULE = "single_save"
SUFFIX, FIRST_VERSION = ".npy", b"\x93NUMPY\x01\x00"
_STEP, _RANK, _MICRO = (re.compile(rf"{name}(\d+)$") for name in ("step", "rank", "micro_step"))


def find(path: Path) -> list[Part]:
    """Return a part for each step and rank of a folder that holds `data/`."""
    found: dict[tuple[int, int], list[str]] = defaultdict(list)
    for key in _folders(path / "data"):
        for step in _folders(key.path):
            for rank in _folders(step.path):
                numbers = _STEP.match(step.name), _RANK.match(rank.name)
                if numbers[0] and numbers[1]:
                    found[int(numbers[0][1]), int(numbers[1][1])].append(rank.path)
    return [
        Part(MODULE, step, rank, tuple(sorted(folders)), sum(map(_size, folders)))
        for (step, rank), folders in found.items()
    ]


def keys(part: Part) -> set[str]:
    """Return the keys of one step and rank."""
    return {canonical(_key(folder)) for folder in part.files}


def read(part: Part, keys: Collection[str] | None) -> list[Value]:
    """Return the values of one step and rank."""
    values = []
    for folder in part.files:
        name = _key(folder)
        if wanted(canonical(name), keys):
            for micro, file in _files(folder):
                values.append(_value(name, micro, file))
    return values


def _key(folder: str) -> str:
    """Return what the user called the values in data/{key}/step{S}/rank{R}."""
    return folder.split(os.sep)[-3]


def _value(name: str, micro: int, file: str) -> Value:
    try:
        array = _load(file)
    except (OSError, ValueError, EOFError) as error:
        raise ReadError(f"{file} cannot be read: {error}; save this step again") from None
    entry = os.path.basename(file)[: -len(SUFFIX)].removeprefix(name).lstrip("._")
    return Value(micro, canonical(name), entry, str(array.dtype), array.shape, array, name=name)


def _load(file: str) -> Array:
    """Return what an .npy file holds; values of one key mostly have one header."""
    content = np.fromfile(file, np.uint8)
    start = 10 + int.from_bytes(content[8:10].tobytes(), "little")
    known = content[:8].tobytes() == FIRST_VERSION and _header(content[8:start].tobytes())
    if not known or known[2].hasobject:
        return np.asarray(np.load(file, allow_pickle=False))
    shape, by_columns, dtype = known
    numbers = content[start:].view(dtype)
    return numbers.reshape(shape, order="F" if by_columns else "C")


@lru_cache(maxsize=256)
def _header(text: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    found: tuple[tuple[int, ...], bool, np.dtype[Any]] = read_array_header_1_0(BytesIO(text))
    return found


def _files(folder: str) -> Iterator[tuple[int, str]]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        micro = _MICRO.match(entry.name)
        if micro and entry.is_dir():
            for file in sorted(os.listdir(entry.path), key=_by_number):
                if file.endswith(SUFFIX):
                    yield int(micro[1]), os.path.join(entry.path, file)
        elif entry.name.endswith(SUFFIX):
            yield 0, entry.path


def _size(folder: str) -> int:
    """Return the bytes of the values below a folder."""
    return sum(os.stat(file).st_size for _, file in _files(folder))


def _by_number(name: str) -> tuple[str, int]:
    number = re.search(r"(\d+)\.npy$", name)
    return (name[: number.start()], int(number[1])) if number else (name, -1)


def _folders(path: str | Path) -> list[os.DirEntry[str]]:
    if not os.path.isdir(path):
        return []
    return [entry for entry in os.scandir(path) if entry.is_dir()]
