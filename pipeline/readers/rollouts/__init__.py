"""Reads what RL trainers and rollout engines write, each format by a file of its own.

find_parts(path) -> parts, one for each step and rank -> read_part(part) -> values
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

from .part import Packed, Part, Value

__all__ = ["Packed", "Part", "Value", "find_parts", "part_keys", "read_config", "read_part"]

MODULES = ("shards", "single_save", "text_files", "torch_files")
"""Each finds parts under a path, and reads those that it found; the first that finds any."""


def find_parts(path: Path) -> list[Part]:
    """Return what a path holds of RL data, by step, then rank; empty when there is nothing."""
    for module in MODULES:
        parts: list[Part] = _reader(module).find(path)
        if parts:
            return sorted(parts, key=lambda part: (part.step, part.rank, part.files))
    return []


def read_part(part: Part, keys: Collection[str] | None = None) -> list[Value]:
    """Return the values of one part.

    Args:
        part: as found.
        keys: only these, as canonical names; None: all.

    Raises:
        ReadError: a file cannot be read, or would have to run code to be read.
    """
    values: list[Value] = _reader(part.module).read(part, keys)
    return values


def part_keys(part: Part) -> set[str]:
    """Return the canonical names of what a part holds, without reading its numbers if possible."""
    found: set[str] = _reader(part.module).keys(part)
    return found


def _reader(module: str) -> Any:
    return import_module(f"{__package__}.{module}")


def read_config(path: Path) -> dict[str, object]:
    """Return the configuration that was saved beside the values; empty when there is none."""
    from .part import read_json

    file = path / "configurations.json"
    found = read_json(file) if file.is_file() else {}
    return found if isinstance(found, dict) else {}
