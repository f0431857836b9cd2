"""Real training in two precisions, two orders of summation, and with one layer that is 1 % off."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ..collectors.recording import on_ranks
from ..collectors.test_torch_micro_steps import accumulated
from ..conftest import compare_here
from . import sharded_layer

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


def test_micro_batches_pair_with_their_own_number(tmp_path: Path) -> None:
    """One more call in micro-batch 2 of 4, forward and backward, moves no other."""
    for name, extra in (("bench", None), ("target", 2)):
        torch.manual_seed(0)
        accumulated(tmp_path / name, one_more_in=extra)
    result = compare_here(tmp_path / "bench", tmp_path / "target")
    assert (result["read"]["only_in_bench"], result["read"]["only_in_target"]) == (0, 2)
    alone = {(f["call"], f["status"]) for f in result["findings"] if f["bench_call"] is None}
    assert alone == {
        ("Tensor.abs.0.forward", "only_in_target"), ("Tensor.abs.0.backward", "only_in_target"),
    }  # fmt: skip
    first = result["first_divergence"]
    assert first["source"]["call"] == "Tensor.abs.0.forward"
    assert first["call"] == first["bench_call"] == "Tensor.sum.2.forward"
    later = {f["call"] for f in result["findings"]}
    assert not {
        name
        for name in later
        if name.split(".")[1] in ("linear", "tanh", "sum", "div") and name.endswith("forward")
    } - {"Tensor.sum.2.forward", "Tensor.div.2.forward"}


@pytest.mark.parametrize("other", ["columns", "rows", "fsdp"])
def test_placements_of_dtensors(tmp_path: Path, other: str) -> None:
    """A layer on one rank against two that hold parts of its weight, and one whose part is off."""
    bench = tmp_path / "bench"
    on_ranks(1, sharded_layer.run, bench, "whole")
    for gain, verdict in ((1.0, "same"), (1.01, "different")):
        target = tmp_path / f"{other}{gain}"
        assert on_ranks(2, sharded_layer.run, target, other, gain) == [0, 0]
        result = compare_here(bench, target)
        assert result["verdict"] == verdict
        if verdict == "different":
            first = result["first_divergence"]
            assert (first["call"], first["slot"]) == ("Tensor.abs.0.forward", "input.0")
            assert first["status"] == "suspect"
