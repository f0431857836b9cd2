"""What may happen to a dump on its way to whoever reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from collectors.parts import write_parquet


def lose_rank(dump: Path, rank: int) -> None:
    for folder in dump.glob(f"step=*/rank={rank}"):
        shutil.rmtree(folder)


def lose_last_part(dump: Path, rank: int) -> None:
    for path in _last_part(dump, rank):
        path.unlink()


def cut_last_part(dump: Path, rank: int) -> None:
    """Leave 60 % of the bytes."""
    for path in _last_part(dump, rank):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) * 6 // 10])


def lose_stacks(dump: Path, rank: int) -> None:
    """Take the stacks of all ranks away; `rank` is not used."""
    for path in dump.glob("step=*/rank=*/calls-*.parquet"):
        calls = pq.read_table(path)
        place = calls.column_names.index("stack")
        nothing = pa.nulls(len(calls), calls.schema.field("stack").type)
        write_parquet(calls.set_column(place, calls.schema.field("stack"), nothing), path)


def _last_part(dump: Path, rank: int) -> list[Path]:
    found = []
    for folder in dump.glob(f"step=*/rank={rank}"):
        for table in ("calls", "tensors"):
            parts = sorted(folder.glob(f"{table}-*.parquet"))
            assert len(parts) > 1
            found.append(parts[-1])
    return found
