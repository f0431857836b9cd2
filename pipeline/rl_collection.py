"""A folder or file of RL data that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import DumpError
from .readers.rollouts import Part, find_parts, read_config


@dataclass(frozen=True)
class Collection:
    """RL data of one side.

    Args:
        path: as the user gave it.
        parts: by step, then rank.
        config: what was saved as configurations.json.
    """

    path: Path
    parts: tuple[Part, ...]
    config: dict[str, object]


def open_collection(path: Path, steps: Sequence[int] = ()) -> Collection:
    """Find the RL data of a path; `steps` picks some.

    Raises:
        DumpError: there is none.
    """
    if not path.exists():
        raise DumpError(f"{path} does not exist; expected a folder or file of RL data")
    found = find_parts(path)
    if not found:
        raise DumpError(
            f"{path} holds no RL data; expected step=<N>/rank=<R>/rollout-*.parquet (crossrank), "
            "data/<key>/step<N>/... (SingleSave), *.jsonl (verl, AReaL), completions_*.parquet "
            "(TRL), or a DataProto, Experience, trajectory or dump (*.pkl, *.pt)"
        )
    parts = tuple(part for part in found if not steps or part.step in steps)
    if not parts:
        there = sorted({part.step for part in found})
        raise DumpError(f"{path} holds no step {list(steps)}; its steps are {there}")
    return Collection(path, parts, read_config(path) if path.is_dir() else {})
