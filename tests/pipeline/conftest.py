"""What tests of engines share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import ray


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """One local Ray for the whole session."""
    root = str(Path(__file__).resolve().parents[2])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": root}},
    )
    yield
    ray.shutdown()
