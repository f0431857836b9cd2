"""Writes a result folder: everything under temporary names first, then in place at once."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Container, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .reports import draw
from .sqlfile import all_names, load
from .store import Store

if TYPE_CHECKING:
    import duckdb

RESULT = "result.json"
REPORT = "report.html"


def strict_json(document: Any) -> str:
    """Return JSON that every parser takes: non-finite numbers are the strings nan, inf, -inf."""
    return json.dumps(_spelled(document), indent=1, allow_nan=False)


class ResultFolder:
    """A result in the making: its tables are saved while later questions are answered.

    Files have temporary names until all of them are there. As a context, it leaves nothing else.

    Args:
        out: the folder of the result.
        store: with every table behind the answer, or those that will be.
    """

    def __init__(self, out: Path, store: Store) -> None:
        self._out = out
        self._store = store
        self._beside = ThreadPoolExecutor(1)
        self._saved: dict[str, Future[None]] = {}

    def __enter__(self) -> ResultFolder:
        self._store.when_final = self._begin
        return self

    def __exit__(self, *error: object) -> None:
        self._store.when_final = None
        self._beside.shutdown(cancel_futures=True)
        if "_folder" in vars(self):
            shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def _folder(self) -> Path:
        self._out.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{self._out.name}-", dir=self._out.parent))

    @cached_property
    def _con(self) -> duckdb.DuckDBPyConnection:
        return self._store.con.cursor()

    def _begin(self, table: str) -> None:
        """Begin to save a table whose rows are all there."""
        file = self._folder / f"{table}.parquet"
        if table not in self._saved:
            self._saved[table] = self._beside.submit(self._store.save, table, file, self._con)

    def write(
        self, result: Mapping[str, Any], more: Callable[[], Mapping[str, bytes]] = dict
    ) -> None:
        """Write result.json, report.html and what is not saved yet, and put all in place.

        `more` gives further files, by name; it is asked when all others are written.
        """
        for table in self._store.tables():
            self._begin(table)
        (self._folder / RESULT).write_text(strict_json(result))
        for saved in self._saved.values():
            saved.result()
        (self._folder / REPORT).write_text(draw(result, self._folder))
        for name, content in more().items():
            (self._folder / name).write_bytes(content)
        self._out.mkdir(exist_ok=True)
        _replace(self._out, self._folder)


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
