"""Comparisons in this process, and the bundled RL data."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine import Engine
from pipeline.engine_local import LocalEngine
from pipeline.rl_analysis import judge_collections, measure_collections, rl_store
from pipeline.rl_collection import open_collection
from pipeline.rl_tasks import Sides, list_samples
from pipeline.settings import limits
from pipeline.store import Store

from ...rollouts import Batches, save

DATA = Path(__file__).parents[2] / "data" / "rl"

Compare = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpack an archive of tests/data/rl once."""
    folders: dict[str, Path] = {}

    def unpacked(name: str) -> Path:
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            with tarfile.open(DATA / f"{name}.tar.xz") as archive:
                archive.extractall(folders[name], filter="data")
        return folders[name]

    return unpacked


@pytest.fixture
def stores() -> Iterator[list[Store]]:
    """Keep the databases of a test, the last one last; they close after it."""
    opened: list[Store] = []
    yield opened
    for store in opened:
        store.__exit__()


@pytest.fixture
def compare(stores: list[Store]) -> Compare:
    """Compare two folders, or two keys of one."""

    def compared(
        a: Path,
        b: Path | None = None,
        keys: tuple[str, str] | None = None,
        engine: Engine | None = None,
    ) -> dict[str, Any]:
        stores.append(rl_store(limits(1)))
        left = open_collection(a)
        sides = Sides(left, open_collection(b) if b else left, keys)
        chosen = engine or LocalEngine(1)
        setting = measure_collections(sides, list_samples(sides, chosen), stores[-1], chosen)
        return judge_collections(sides, setting, stores[-1], chosen)

    return compared


@pytest.fixture
def judge(compare: Compare, tmp_path: Path) -> Callable[[Batches, Batches], dict[str, Any]]:
    """Save two sides as shards and compare them."""

    def judged(a: Batches, b: Batches) -> dict[str, Any]:
        return compare(save(a, tmp_path / "a"), save(b, tmp_path / "b"))

    return judged


def causes(result: dict[str, Any]) -> list[str]:
    """Return the causes of a result, in order."""
    return [finding["cause"] for finding in result["findings"]]
