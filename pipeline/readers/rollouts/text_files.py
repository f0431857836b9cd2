"""Reads what trainers write as lines of JSON, and TRL's Parquet files of completions.

    verl    {dir}/{global_step}.jsonl       input, output, score, step, ...; step from 1
    AReaL   {dir}/{version}/{task_id}.jsonl task_id, sample_idx, prompt, completion, reward
    TRL     completions_{step}.parquet      prompt, completion, advantage, one column a reward

verl's and TRL's running number of the first step is 1; everywhere in crossrank it is 0.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ..errors import ReadError
from .names import canonical
from .part import Part, Value, number_value, ragged_value, text_value, wanted

MODULE = "text_files"
TEXT_COLUMNS = ("uid", "request_id", "prompt_text", "response_text", "gts", "finish_reason")
PLACES = ("rank", "micro_step", "step")

Row = dict[str, Any]


def find(path: Path) -> list[Part]:
    """Return a part for each step and rank that a file, or the files of a folder, hold."""
    files = [path] if path.is_file() else sorted(path.rglob("*.jsonl")) + _parquet(path)
    found: dict[tuple[int, int], set[str]] = {}
    for file in files:
        if file.suffix in (".jsonl", ".parquet"):
            for row in _rows(str(file)):
                found.setdefault(_place(file, row), set()).add(str(file))
    return [
        Part(MODULE, step, rank, tuple(sorted(names)))
        for (step, rank), names in sorted(found.items())
    ]


def read(part: Part, keys: Collection[str] | None) -> list[Value]:
    """Return the values of one step and rank."""
    rows: dict[int, list[Row]] = {}
    for file in map(Path, part.files):
        for row in _rows(str(file)):
            if _place(file, row) == (part.step, part.rank):
                rows.setdefault(int(row.get("micro_step", 0)), []).append(row)
    return [value for micro, some in sorted(rows.items()) for value in _values(micro, some, keys)]


def keys(part: Part) -> set[str]:
    """Return the keys of one step and rank."""
    return {value.key for value in read(part, None)}


def _values(micro: int, rows: list[Row], keys: Collection[str] | None) -> Iterable[Value]:
    names = dict.fromkeys(name for row in rows for name in row if name not in PLACES)
    for name in names:
        column = [row.get(name) for row in rows]
        key = canonical(name, text=any(isinstance(one, str) for one in column))
        key = "uid" if name == "task_id" else key
        if wanted(key, keys):
            value = _column(micro, key, column)
            if value:
                yield value


def _column(micro: int, key: str, column: list[Any]) -> Value | None:
    """Return one field of all rows; None for what is no number, text or list of numbers."""
    if any(isinstance(one, str) for one in column) or key in TEXT_COLUMNS:
        return text_value(micro, key, ["" if one is None else str(one) for one in column])
    if any(isinstance(one, list) for one in column):
        return ragged_value(micro, key, [one or [] for one in column], _dtype(column))
    if any(isinstance(one, (int, float)) for one in column):
        filled = [float("nan") if one is None else one for one in column]
        return number_value(micro, key, filled)
    return None


def _dtype(column: list[Any]) -> str:
    whole = all(isinstance(number, int) for row in column for number in row or [])
    return "int64" if whole else "float64"


def _place(file: Path, row: Row) -> tuple[int, int]:
    if "task_id" in row:  # AReaL: the folder is the policy's version
        return int(row.get("tail_version", 0)), int(row.get("rank", 0))
    step = row.get("step", file.stem if file.stem.isdecimal() else 1)
    return max(0, int(step) - 1), int(row.get("rank", 0))


@lru_cache(maxsize=4)
def _rows(file: str) -> tuple[Row, ...]:
    if file.endswith(".parquet"):
        return tuple(pq.read_table(file).to_pylist())
    rows = []
    for number, line in enumerate(Path(file).read_text().splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ReadError(f"{file}, line {number} is no JSON: {error}") from None
            if not isinstance(row, dict):
                raise ReadError(f"{file}, line {number} is no object; expected one sample a line")
            rows.append(row)
    return tuple(rows)


def _parquet(path: Path) -> list[Path]:
    return sorted(path.rglob("completions_*.parquet"))
