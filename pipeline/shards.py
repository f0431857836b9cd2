"""Finds the shards of a dump, of whichever kind it is and wherever it lies."""

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
    """One rank's record of one step.

    Args:
        step: of the training.
        rank: global.
        path: the folder it lies in; of a shard under a URL, what stands after that.
        bytes: its size.
        place: the folder as the user would name it.
        url: of the dump, when it must be fetched before it is read.
        node: where it lies, when only one node can read it; else empty.
        newest: time of its last change, in ns since 1970.
    """

    step: int
    rank: int
    path: Path
    bytes: int
    place: str
    url: str = ""
    node: str = ""
    newest: int = 0


@dataclass(frozen=True)
class Dump:
    """A dump that was found.

    Args:
        name: as the user gave it.
        kind: `shards` (our own) or `msprobe`.
        shards: by step, then rank.
        run: what run.json says; empty for msprobe.
        notes: what was found strange, as warnings of the result.
    """

    name: str
    kind: str
    shards: tuple[Shard, ...]
    run: dict[str, Any] = field(default_factory=dict)
    notes: tuple[dict[str, Any], ...] = ()

    @property
    def world_size(self) -> int | None:
        """Return the number of ranks if the dump says it."""
        size = self.run.get("world_size")
        return size if isinstance(size, int) else None


def open_dump(place: Path | str, steps: Sequence[int] = ()) -> Dump:
    """Find the shards of a dump; `steps` picks some.

    Args:
        place: a folder, or the URL of one: s3://bucket/folder.
        steps: all of them when empty.

    Raises:
        DumpError: there is nothing, nothing of ours, or something newer than this version.
    """
    if "://" in str(place):
        from .remote import open_remote

        return open_remote(str(place), steps)
    return open_folder(Path(place), str(place), steps)


def open_folder(path: Path, name: str, steps: Sequence[int] = ()) -> Dump:
    """Find the shards of a dump in a folder that errors call `name`."""
    if not path.exists():
        raise DumpError(f"{name} does not exist; expected the folder of a dump")
    run = _run(path, name)
    folders, kind = (shard_dirs(path) if path.is_dir() else {}), "shards"
    if not folders and not run:
        folders, kind = rank_folders(path), "msprobe"
    if not folders:
        what = "is empty" if path.is_dir() and not any(path.iterdir()) else "holds no dump"
        raise DumpError(
            f"{name} {what}; expected step=<N>/rank=<R>/calls-*.parquet (crossrank) "
            "or step<N>/rank<R>/dump.json (msprobe)"
        )
    chosen = {key: folder for key, folder in folders.items() if not steps or key[0] in steps}
    if not chosen:
        there = sorted({step for step, _ in folders})
        raise DumpError(f"{name} holds no step {list(steps)}; its steps are {there}")
    return Dump(name, kind, tuple(_shard(key, folder) for key, folder in chosen.items()), run)


def refuse_newer(version: object, file: Path) -> None:
    """Raise DumpError if a file says that it was written by a newer schema than ours."""
    if str(version).isdecimal() and int(str(version)) > SCHEMA_VERSION:
        raise DumpError(
            f"{file} has schema version {version}, this crossrank reads up to {SCHEMA_VERSION}; "
            "upgrade it: pip install -U crossrank"
        )


def _shard(key: tuple[int, int], folder: Path) -> Shard:
    states = [file.stat() for file in folder.iterdir()]
    newest = max((state.st_mtime_ns for state in states), default=0)
    size = sum(state.st_size for state in states)
    return Shard(*key, folder, size, str(folder), newest=newest)


def _run(path: Path, name: str) -> dict[str, Any]:
    try:
        run = json.loads((path / RUN_FILE).read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        return {}
    refuse_newer(run.get("schema_version"), Path(name) / RUN_FILE)
    return run
