"""Reads what RL trainers and rollout engines write, each format by a file of its own.

find_parts(path) -> parts, one for each step and rank -> read_part(part) -> values
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path

from .part import Packed, Part, Value
from .text_files import find_text_files
from .torch_files import find_torch_files

__all__ = ["Packed", "Part", "Value", "find_parts", "part_keys", "read_config", "read_part"]


def find_parts(path: Path) -> list[Part]:
    """Return what a path holds of RL data, by step, then rank; empty when there is nothing."""
    from .shards import find_shards
    from .single_save import find_single_save

    for find in (find_shards, find_single_save, find_text_files, find_torch_files):
        parts = find(path)
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
    module = import_module(f"{__package__}.{part.module}")
    values: list[Value] = module.read(part, keys)
    return values


def part_keys(part: Part) -> set[str]:
    """Return the canonical names of what a part holds, without reading its numbers if possible."""
    module = import_module(f"{__package__}.{part.module}")
    found: set[str] = module.keys(part)
    return found


def read_config(path: Path) -> dict[str, object]:
    """Return the configuration that was saved beside the values; empty when there is none."""
    from .part import read_json

    file = path / "configurations.json"
    found = read_json(file) if file.is_file() else {}
    return found if isinstance(found, dict) else {}
