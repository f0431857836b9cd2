"""Finds the shards of a dump, of whichever kind it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collectors.layout import FORMAT, RUN_FILE, SCHEMA_VERSION, shard_dirs

from .errors import DumpError
from .readers.msprobe.folders import rank_folders


@dataclass(frozen=True)
class Shard:
    """One rank's record of one step: the folder it lies in, and its size in bytes."""

    step: int
    rank: int
    path: Path
    bytes: int


@dataclass(frozen=True)
class Dump:
    """A dump that was found.

    Args:
        path: as the user gave it.
        kind: `shards` (our own) or `msprobe`.
        shards: by step, then rank.
        run: what run.json says; empty for msprobe.
    """

    path: Path
    kind: str
    shards: tuple[Shard, ...]
    run: dict[str, Any] = field(default_factory=dict)

    @property
    def world_size(self) -> int | None:
        """Return the number of ranks if the dump says it."""
        size = self.run.get("world_size")
        return size if isinstance(size, int) else None


def open_dump(path: Path, steps: Sequence[int] = ()) -> Dump:
    """Find the shards of a dump; `steps` picks some.

    Raises:
        DumpError: there is nothing, nothing of ours, or something newer than this version.
    """
    if not path.exists():
        raise DumpError(f"{path} does not exist; expected the folder of a dump")
    run = _run(path)
    folders, kind = (shard_dirs(path) if path.is_dir() else {}), "shards"
    if not folders and not run:
        folders, kind = rank_folders(path), "msprobe"
    if not folders:
        what = "is empty" if path.is_dir() and not any(path.iterdir()) else "holds no dump"
        raise DumpError(
            f"{path} {what}; expected step=<N>/rank=<R>/calls-*.parquet (crossrank) "
            "or step<N>/rank<R>/dump.json (msprobe)"
        )
    chosen = {key: folder for key, folder in folders.items() if not steps or key[0] in steps}
    if not chosen:
        there = sorted({step for step, _ in folders})
        raise DumpError(f"{path} holds no step {list(steps)}; its steps are {there}")
    shards = tuple(
        Shard(step, rank, folder, sum(file.stat().st_size for file in folder.iterdir()))
        for (step, rank), folder in chosen.items()
    )
    return Dump(path, kind, shards, run)


def refuse_newer(version: object, file: Path) -> None:
    """Raise DumpError if a file says that it was written by a newer schema than ours."""
    if str(version).isdecimal() and int(str(version)) > SCHEMA_VERSION:
        raise DumpError(
            f"{file} has schema version {version}, this crossrank reads up to {SCHEMA_VERSION}; "
            "upgrade it: pip install -U crossrank"
        )


def _run(path: Path) -> dict[str, Any]:
    try:
        run = json.loads((path / RUN_FILE).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        return {}
    refuse_newer(run.get("schema_version"), path / RUN_FILE)
    return run
