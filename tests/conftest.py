"""What the tests share: an analysis in this process, and the bundled real dumps."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.analysis import analyze_dump, run_store
from pipeline.engine_local import LocalEngine
from pipeline.settings import limits
from pipeline.shards import open_dump

DATA = Path(__file__).parent / "data"

Analyze = Callable[..., dict[str, Any]]


def analyze_here(path: Path, *, nan_only: bool = False) -> dict[str, Any]:
    """Return the result document of a dump, computed in this process."""
    dump, share = open_dump(path), limits(1)
    with run_store(dump, share, nan_only=nan_only) as store:
        return analyze_dump(dump, store, LocalEngine(1), share)


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
