"""A mistake of ours is told as one, whatever the command; a broken file as a broken file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.engine import failure_of, reason_of
from pipeline.errors import InternalError

from ..conftest import compare_here
from ..dumps import Run, Value

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("pipeline", "analyzers", "collectors", "sql")
Checkout = Callable[[str], Path]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a copy of the program in which one question asks for a column that is not there."""

    def broken(question: str) -> Path:
        for room in ROOMS:
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / room, tmp_path / "copy" / room, ignore=ignore)
        file = tmp_path / "copy" / "sql" / f"{question}.sql"
        file.write_text(file.read_text().replace("\nFROM ", "\nFROM no_such_schema.", 1))
        return tmp_path / "copy"

    return broken


def dump(folder: Path, *, damaged: bool = False) -> Path:
    run = Run(folder, ranks=2)
    for rank in range(2):
        run.rank(rank).call("Torch.exp.0.forward", [Value()], [Value(max=2.0)])
    run.write()
    if damaged:
        (part,) = (folder / "step=0" / "rank=1").glob("tensors-*.parquet")
        content = bytearray(part.read_bytes())
        content[4:200] = b"\xff" * 196  # its footer is whole: only reading it shows the damage
        part.write_bytes(bytes(content))
    return folder


def told(command: list[str], out: Path, cwd: Path) -> tuple[int, list[tuple[str, int]], str]:
    """Return exit code, code and rank of the warnings, and the text of the first."""
    words = [sys.executable, "-m", *command, "--out", str(out), "--quiet", "--json"]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    warnings = json.loads(done.stdout)["warnings"]
    texts = [w["text"] for w in warnings] or [""]
    return done.returncode, [(w["code"], w["rank"]) for w in warnings], texts[0]


@pytest.mark.parametrize(
    ("command", "question"),
    [("analyze", "health/shards"), ("compare", "diff/error_profile")],
)
def test_sql_of_ours_that_fails(
    tmp_path: Path, checkout: Checkout, command: str, question: str
) -> None:
    whole = str(dump(tmp_path / "whole"))
    words = [f"pipeline.{command}", *[whole] * (1 + (command == "compare"))]
    code, warnings, text = told(words, tmp_path / "out", checkout(question))
    assert code == 1
    assert warnings == [("internal_error", 0), ("internal_error", 1)]
    assert f"sql/{question}.sql fails on data that can be read" in text
    assert "mistake of crossrank, not of the file" in text


@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_a_damaged_file(tmp_path: Path, command: str) -> None:
    whole, damaged = dump(tmp_path / "whole"), dump(tmp_path / "damaged", damaged=True)
    sides = [str(whole)] * (command == "compare") + [str(damaged)]
    code, warnings, text = told([f"pipeline.{command}", *sides], tmp_path / "out", ROOT)
    assert (code, warnings) == (0, [("shard_unreadable", 1)])
    assert "mistake of crossrank" not in text


def test_a_column_of_another_kind_is_the_files(tmp_path: Path) -> None:
    """It can be read, and is no number: who wrote it is to blame, not who asks for numbers."""
    whole, other = dump(tmp_path / "whole"), dump(tmp_path / "other")
    (part,) = (other / "step=0" / "rank=0").glob("tensors-*.parquet")
    rows = pq.read_table(part)
    texts = pa.array(["many"] * len(rows))
    rows = rows.set_column(rows.schema.get_field_index("max"), "max", texts)
    pq.write_table(rows, part)
    result = compare_here(whole, other)
    assert [(w["code"], w["rank"]) for w in result["warnings"]] == [("shard_unreadable", 0)]


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (KeyError("slot"), True),
        (TypeError("NoneType"), True),
        (AssertionError(), True),
        (InternalError("sql/x.sql fails"), True),
        (duckdb.InvalidInputException("no magic bytes"), False),
        (duckdb.OutOfMemoryException("4 GiB"), False),
        (OSError("gone"), False),
        (MemoryError(), False),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "cut"), False),
        (json.JSONDecodeError("cut", "", 0), False),
    ],
)
def test_whose_mistake_an_error_is(error: Exception, ours: bool) -> None:
    failure = failure_of(error)
    assert failure.ours is ours
    if ours:
        with pytest.raises(InternalError):
            reason_of(failure)
    else:
        assert reason_of(failure) == failure.reason
