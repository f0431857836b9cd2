"""Where the files of a dump stand and what they are called.

    DUMP/run.json
    DUMP/step=<N>/rank=<R>/calls-<part>.parquet
    DUMP/step=<N>/rank=<R>/tensors-<part>.parquet
    DUMP/step=<N>/rank=<R>/rollout-<writer>-<part>.parquet      RL data; any process may add some

Names depend on step, rank and part alone, never on a call. A part that is being written carries
UNFINISHED at its end and is renamed when it is whole.
"""

from __future__ import annotations

import re
from pathlib import Path

FORMAT = "crossrank"
SCHEMA_VERSION = 1
"""What run.json and every footer say; the columns of the version stand in schema."""

RUN_FILE = "run.json"
TABLES = ("calls", "tensors")
ROLLOUT = "rollout"
"""First part of the names of files with RL data."""
CONFIG_FILE = "configurations.json"
UNFINISHED = ".unfinished"

FOOTER_PREFIX = "crossrank."
"""Keys of the Parquet footer: format, schema_version, run_id, step, rank, dropped, complete, ..."""
ROLLOUT_KEYS = FOOTER_PREFIX + "keys"
"""In files with RL data: JSON list of each key and whether it holds texts."""

_STEP = re.compile(r"step=(\d+)$")
_RANK = re.compile(r"rank=(\d+)$")


def shard_dir(dump: Path, step: int, rank: int) -> Path:
    """Return the folder that holds one rank's parts of one step."""
    return dump / f"step={step}" / f"rank={rank}"


def part_name(table: str, part: int) -> str:
    """Return the file name of one part, e.g. `calls-00003.parquet`."""
    return f"{table}-{part:05d}.parquet"


def shard_dirs(dump: Path) -> dict[tuple[int, int], Path]:
    """Return every shard folder of a dump by (step, rank), in order; empty when there are none."""
    found = {}
    for step_dir in dump.glob("step=*"):
        step = _STEP.search(step_dir.name)
        for rank_dir in step_dir.glob("rank=*"):
            rank = _RANK.search(rank_dir.name)
            if step and rank and rank_dir.is_dir():
                found[int(step[1]), int(rank[1])] = rank_dir
    return dict(sorted(found.items()))
