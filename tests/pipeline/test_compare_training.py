"""Real training in two precisions, two orders of summation, and with one layer that is 1 % off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..conftest import compare_here

ROOT = Path(__file__).resolve().parents[2]
Recorded = Callable[..., Path]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Record a variant, once."""
    folder = tmp_path_factory.mktemp("training")

    def record(*options: str) -> Path:
        dump = folder / "-".join(["plain", *(o.strip("-") for o in options)])
        if not dump.exists():
            module = [sys.executable, "-m", "tests.pipeline.small_transformer"]
            subprocess.run([*module, str(dump), *options], cwd=ROOT, check=True)
        return dump

    return record


def suspects(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(f["call"], f["slot"]) for f in result["findings"] if f["status"] == "suspect"]


HALF = ["--dtype", "bfloat16"]
SEEDS = ["0", "5"]


@pytest.mark.parametrize("seed", SEEDS)
def test_another_precision_is_a_dtype_and_no_suspect(recorded: Recorded, seed: str) -> None:
    result = compare_here(recorded("--seed", seed), recorded("--seed", seed, *HALF))
    first = result["first_divergence"]
    assert (first["call"], first["status"]) == ("Functional.embedding.0.forward", "dtype")
    assert suspects(result) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("fault", "where"),
    [
        ("--weight", ("Functional.linear.16.forward", "input.1")),
        ("--output", ("Functional.gelu.2.forward", "input.0")),
    ],
)
def test_one_layer_off_in_another_precision_is_the_only_suspect(
    recorded: Recorded, seed: str, fault: str, where: tuple[str, str]
) -> None:
    result = compare_here(recorded("--seed", seed), recorded("--seed", seed, *HALF, fault))
    assert result["first_divergence"]["status"] == "dtype"
    assert suspects(result) == [where]


@pytest.mark.parametrize("seed", SEEDS)
def test_another_order_of_sums_is_the_same(recorded: Recorded, seed: str) -> None:
    result = compare_here(recorded("--seed", seed), recorded("--seed", seed, "--order"))
    assert (result["verdict"], result["findings"]) == ("same", [])


@pytest.mark.parametrize("seed", SEEDS)
def test_another_order_and_one_layer_off(recorded: Recorded, seed: str) -> None:
    result = compare_here(recorded("--seed", seed), recorded("--seed", seed, "--order", "--weight"))
    first = result["first_divergence"]
    assert (first["call"], first["slot"]) == ("Functional.linear.16.forward", "input.1")
    assert first["source"]["why"] == "a weight that differed from the start"
    assert len(suspects(result)) == 1
