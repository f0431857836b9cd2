"""Which folders of an msprobe dump hold which step and rank.

    DUMP/step<N>/rank<R>/dump.json      the usual form
    DUMP/step<N>/proc<pid>/dump.json    torch.distributed was never initialised
    DUMP/pynative/step<N>/...           MindSpore with graphs: the pynative side

A step folder, a rank folder or a dump.json itself may be given in DUMP's place.
"""

from __future__ import annotations

import re
from pathlib import Path

RECORDS = ("dump.json", "debug.json")

_STEP = re.compile(r"step_?(\d+)$")
_RANK = re.compile(r"rank(\d*)$")
_PROC = re.compile(r"proc(\d+)$")


def rank_folders(path: Path) -> dict[tuple[int, int], Path]:
    """Return every rank folder by (step, rank), in order; empty when `path` is no msprobe dump.

    `rank` without a number is rank 0, as is a `proc<pid>` that is alone in its step. Further
    `proc<pid>` folders are numbered after the highest rank, in the order of their pids.
    """
    if path.name in RECORDS and path.is_file():
        path = path.parent
    if not path.is_dir():
        return {}
    if _holds_records(path):
        return {(_number(_STEP, path.parent.name) or 0, _number(_RANK, path.name) or 0): path}
    if _ranks_of_step(path):
        steps = {_number(_STEP, path.name) or 0: path}
    else:
        root = path / "pynative" if (path / "pynative").is_dir() else path
        steps = {
            number: child
            for child in sorted(root.glob("step*"))
            if (number := _number(_STEP, child.name)) is not None
        }
    return {
        (step, rank): folder
        for step, step_folder in sorted(steps.items())
        for rank, folder in sorted(_ranks_of_step(step_folder).items())
    }


def _ranks_of_step(folder: Path) -> dict[int, Path]:
    children = [child for child in folder.iterdir() if _holds_records(child)]
    ranks = {
        _number(_RANK, child.name) or 0: child for child in children if _RANK.match(child.name)
    }
    after = max(ranks, default=-1) + 1
    procs = [child for child in children if _PROC.match(child.name)]
    procs.sort(key=lambda child: _number(_PROC, child.name) or 0)
    return ranks | {after + place: child for place, child in enumerate(procs)}


def _holds_records(folder: Path) -> bool:
    return folder.is_dir() and any((folder / name).exists() for name in RECORDS)


def _number(pattern: re.Pattern[str], name: str) -> int | None:
    match = pattern.match(name)
    return int(match[1]) if match and match[1] else None
