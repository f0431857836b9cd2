"""What the tests share: an analysis in this process, and the bundled real dumps."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pipeline.analysis import analyze_dump, run_store
from pipeline.comparison import Comparison, compare_dumps, counterparts
from pipeline.engine_local import LocalEngine
from pipeline.settings import limits
from pipeline.shards import open_dump
from pipeline.store import Store

DATA = Path(__file__).parent / "data"

Analyze = Callable[..., dict[str, Any]]


def analyze_here(path: Path, *, nan_only: bool = False) -> dict[str, Any]:
    """Return the result document of a dump, computed in this process."""
    dump, share = open_dump(path), limits(1)
    with run_store(dump, share, nan_only=nan_only) as store:
        return analyze_dump(dump, store, LocalEngine(1), share)


def compare_here(
    bench: Path,
    target: Path,
    *,
    noise: Sequence[Path] = (),
    strict: bool = False,
    ranks: Sequence[tuple[int, int]] = (),
) -> dict[str, Any]:
    """Return the result document of a comparison, computed in this process."""
    dumps = open_dump(bench), open_dump(target)
    runs = tuple(open_dump(run) for run in noise)
    comparison = Comparison(*dumps, runs, strict, counterparts(*dumps, ranks))
    share = limits(1)
    with TemporaryDirectory() as work, Store(share, comparison.params) as store:
        return compare_dumps(comparison, store, LocalEngine(1), share, work=Path(work))


@pytest.fixture
def analyze() -> Analyze:
    """Analyse a dump in this process."""
    return analyze_here


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[[str], Path]:
    """Unpack a bundled real dump, named as in tests/data: `nan/A02_compute_tp4_allreduce`."""

    def unpacked(name: str) -> Path:
        target = tmp_path / name.replace("/", "_")
        with tarfile.open(DATA / f"{name}.tar.xz") as archive:
            archive.extractall(target, filter="data")
        return target / "dump"

    return unpacked


def truths(group: str) -> dict[str, Any]:
    """Return the truths of a group of bundled dumps, by name."""
    content: dict[str, Any] = json.loads((DATA / group / "truth.json").read_text())
    return content
