"""Writes a result folder: everything under temporary names first, then in place at once."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

from .reports import draw
from .sqlfile import all_names, load
from .store import Store

RESULT = "result.json"
REPORT = "report.html"


def strict_json(document: Any) -> str:
    """Return JSON that every parser takes: non-finite numbers are the strings nan, inf, -inf."""
    return json.dumps(_spelled(document), indent=1, allow_nan=False)


def write_result(out: Path, result: Mapping[str, Any], store: Store) -> None:
    """Write result.json, report.html and every table behind the answer as Parquet into `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        (temporary / RESULT).write_text(strict_json(result))
        for table in store.tables():
            store.save(table, temporary / f"{table}.parquet")
        (temporary / REPORT).write_text(draw(result, temporary))
        out.mkdir(exist_ok=True)
        _replace(out, temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace(out: Path, new: Path) -> None:
    """Put the files of a result in the place of an earlier one; result.json goes first, comes last.

    So a folder that holds one is whole, whenever the process ends.
    """
    if (out / RESULT).exists():
        (out / RESULT).unlink()
        for name in all_names():
            (out / f"{load(name).table}.parquet").unlink(missing_ok=True)
    for file in sorted(new.iterdir(), key=lambda file: file.name == RESULT):
        os.replace(file, out / file.name)


def exit_code(
    verdict: str, fail_on: Container[str], warnings: Iterable[Mapping[str, Any]] = ()
) -> int:
    """Return 0, or what `--fail-on` asks for: 3 for something found, 4 for cannot tell.

    1 when a mistake of ours has left something unjudged.
    """
    if any(warning["code"] == "internal_error" for warning in warnings):
        return 1
    if verdict not in fail_on:
        return 0
    return 4 if verdict == "unknown" else 3


def _spelled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _spelled(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(part) for part in value]
    return value
