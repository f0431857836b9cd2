"""Reads the folders of `SingleSave`, msprobe's and ours: one .npy a value.

    data/{key}/step{S}/rank{R}/micro_step{M}/{key}.npy, {key}.{i}.npy, {key}.{name}.npy

`save_ex` without a micro step leaves `micro_step{M}` out; msprobe 8.3 wrote `{key}{i}.npy`.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from ..errors import ReadError
from .names import canonical
from .part import Part, Value, wanted

MODULE = "single_save"
_STEP, _RANK, _MICRO = (re.compile(rf"{name}(\d+)$") for name in ("step", "rank", "micro_step"))


def find_single_save(path: Path) -> list[Part]:
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
    return {canonical(Path(folder).parent.parent.name) for folder in part.files}


def read(part: Part, keys: Collection[str] | None) -> list[Value]:
    """Return the values of one step and rank."""
    values = []
    for folder in map(Path, part.files):
        name = folder.parent.parent.name
        if wanted(canonical(name), keys):
            for micro, file in _files(folder):
                values.append(_value(name, micro, file))
    return values


def _value(name: str, micro: int, file: Path) -> Value:
    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ReadError(f"{file} cannot be read: {error}; save this step again") from None
    entry = file.stem.removeprefix(name).lstrip("._")
    return Value(micro, canonical(name), entry, str(array.dtype), array.shape, array, name=name)


def _files(folder: Path) -> Iterator[tuple[int, Path]]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        micro = _MICRO.match(entry.name)
        if micro and entry.is_dir():
            for file in sorted(os.listdir(entry.path), key=_by_number):
                if file.endswith(".npy"):
                    yield int(micro[1]), Path(entry.path, file)
        elif entry.name.endswith(".npy"):
            yield 0, Path(entry.path)


def _size(folder: str) -> int:
    """Return the bytes of the values below a folder."""
    return sum(file.stat().st_size for _, file in _files(Path(folder)))


def _by_number(name: str) -> tuple[str, int]:
    number = re.search(r"(\d+)\.npy$", name)
    return (name[: number.start()], int(number[1])) if number else (name, -1)


def _folders(path: str | Path) -> list[os.DirEntry[str]]:
    if not os.path.isdir(path):
        return []
    return [entry for entry in os.scandir(path) if entry.is_dir()]
