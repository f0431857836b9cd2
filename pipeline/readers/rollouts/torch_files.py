"""Reads what trainers write with torch.save or pickle; the content says which trainer it was."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import ReadError
from . import areal, openrlhf, slime, trl, verl
from .opening import open_saved
from .part import Part, Value, wanted

MODULE = "torch_files"
TRAINERS = (verl, slime, openrlhf, areal, trl)
SUFFIXES = (".pt", ".pth", ".pkl", ".pickle")


def find(path: Path) -> list[Part]:
    """Return a part for each file; a step is the number in its name, else its place."""
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    found = [file for file in files if file.suffix in SUFFIXES and file.is_file()]
    return [
        Part(MODULE, int(f.stem) if f.stem.isdecimal() else place, 0, (str(f),), f.stat().st_size)
        for place, f in enumerate(found)
    ]


def read(part: Part, keys: Collection[str] | None) -> list[Value]:
    """Return the values of one file."""
    return [value for value in _values(part.files[0]) if wanted(value.key, keys)]


def keys(part: Part) -> set[str]:
    """Return the keys of one step and rank."""
    return {value.key for value in read(part, None)}


@lru_cache(maxsize=2)
def _values(file: str) -> list[Value]:
    try:
        content: Any = open_saved(file, Path(file).stat().st_size)
        for trainer in TRAINERS:
            if trainer.recognises(content):
                return list(trainer.values(content))
    except Exception as error:  # what is in a file of others can be wrong in any way
        reason = str(error).removeprefix(f"{file}: ").removeprefix(f"{file} ")
        kind = "" if isinstance(error, ReadError) else f"{type(error).__name__}: "
        raise ReadError(
            f"{file} cannot be read ({kind}{reason}); expected a file of torch.save or pickle; "
            "write it again"
        ) from None
    raise ReadError(
        f"{file} is none of what verl, slime, OpenRLHF, AReaL or TRL hold; expected a DataProto, "
        "a rollout or train dump, an Experience, a trajectory, or inputs of a loss"
    )
