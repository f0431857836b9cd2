"""Writes RL data of SingleSave, or of a trainer, as shards of our own."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collectors.layout import CONFIG_FILE, FORMAT, ROLLOUT, SCHEMA_VERSION, shard_dir
from collectors.parts import RunInfo, write_rollouts

from .engine import Engine
from .readers.rollouts import Part, Value, read_part
from .rl_collection import Collection


@dataclass(frozen=True)
class IngestTask:
    """One part, and the dump that it goes to."""

    number: int
    part: Part
    dump: Path

    def __str__(self) -> str:
        return f"rank {self.part.rank}, step {self.part.step}"


def ingest_collection(source: Collection, dump: Path, engine: Engine) -> list[tuple[Any, Any]]:
    """Write every part as a file of a shard; return each task with what came of it."""
    RunInfo(run_id="ingested").write(dump)
    config = source.path / CONFIG_FILE
    if config.is_file():
        shutil.copy(config, dump / CONFIG_FILE)
    tasks = [IngestTask(number, part, dump) for number, part in enumerate(source.parts)]
    return list(engine.map(ingest_part, tasks))


def ingest_part(task: IngestTask) -> str:
    """Write one part; runs in a worker."""
    folder = shard_dir(task.dump, task.part.step, task.part.rank)
    folder.mkdir(parents=True, exist_ok=True)
    footer = {"crossrank.format": FORMAT, "crossrank.schema_version": str(SCHEMA_VERSION)}
    rows = [_row(value) for value in read_part(task.part)]
    write_rollouts(folder / f"{ROLLOUT}-ingested-{task.number:05d}.parquet", rows, footer)
    return ""


def _row(value: Value) -> dict[str, Any]:
    row = {"micro_step": value.micro, "key": value.name or value.key, "entry": value.entry or None}
    if value.dtype == "text":
        return {**row, "dtype": "text", "shape": list(value.shape), "texts": value.array.tolist()}
    # numbers of a format that NumPy lacks were widened when they were read, exactly
    array = value.array.astype(value.array.dtype.newbyteorder("<"))
    row |= {"dtype": array.dtype.name, "shape": list(value.shape)}
    if value.lengths is not None:
        pieces = [one[:length] for one, length in zip(array, value.lengths, strict=True)]
        array = np.concatenate(pieces) if pieces else array
        row |= {"shape": None, "lengths": value.lengths.tolist()}
    return {**row, "data": array.tobytes()}
