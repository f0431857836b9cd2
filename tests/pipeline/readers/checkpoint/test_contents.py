"""What is not looked into is told apart by its content alone, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributed import checkpoint

from tests.checkpoints import compare, found


def save(folder: Path, seed: int) -> Path:
    """Write a distributed checkpoint with a state of random generators, as Megatron nests it."""
    state = [{"np": ("MT19937", np.arange(seed, seed + 9)), "torch": torch.full((5,), seed)}]
    checkpoint.save({"w": torch.ones(2), "rng_state": state}, checkpoint_id=folder, no_dist=True)
    return folder


@pytest.mark.parametrize(("other", "differing"), [(1, set()), (2, {"rng_state"})])
def test_arrays_in_the_state_of_random_generators(
    tmp_path: Path, other: int, differing: set[str]
) -> None:
    result = compare(save(tmp_path / "a", 1), save(tmp_path / "b", other))
    names = {name.split(".")[0] for name, _ in found(result, "opaque")}
    assert names == differing
