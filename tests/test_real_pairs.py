"""Real pairs of dumps of msprobe with a known first difference, both ways round."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from .conftest import DATA, compare_here, truths

TRUTHS = truths("compare")
CASES = sorted(TRUTHS)
WITHOUT_SOURCE = [case for case in CASES if not case.startswith("B04")]
"""Only the source tells in B04 which of two calls with one input is the inserted one."""


def unpacked(case: str, folder: Path) -> tuple[Path, Path]:
    with tarfile.open(DATA / "compare" / f"{case}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "bench", folder / "target"


def agrees(result: dict[str, Any], truth: dict[str, Any], *, swapped: bool = False) -> None:
    first = result["first_divergence"]
    if truth["first"] is None:
        assert (result["verdict"], first) == ("same", None)
        return
    assert result["verdict"] == "different"
    assert truth["first"][0] == first["bench_call" if swapped else "call"]
    assert first["rank"] == truth.get("rank", first["rank"])
    assert first["slot"] == truth.get("slot", first["slot"])


@pytest.mark.parametrize("case", CASES)
def test_the_first_difference(case: str, tmp_path: Path) -> None:
    bench, target = unpacked(case, tmp_path)
    result = compare_here(bench, target)
    agrees(result, TRUTHS[case])
    if unpaired := TRUTHS[case].get("unpaired"):
        assert [result["read"][f"only_in_{side}"] for side in ("bench", "target")] == unpaired
    assert result["warnings"] == []


@pytest.mark.parametrize("case", CASES)
def test_the_same_with_the_sides_exchanged(case: str, tmp_path: Path) -> None:
    bench, target = unpacked(case, tmp_path)
    agrees(compare_here(target, bench), TRUTHS[case], swapped=True)


@pytest.mark.parametrize("case", WITHOUT_SOURCE)
def test_the_same_without_stacks_and_structure(case: str, tmp_path: Path) -> None:
    bench, target = unpacked(case, tmp_path)
    for file in [*tmp_path.rglob("stack.json"), *tmp_path.rglob("construct.json")]:
        file.unlink()
    agrees(compare_here(bench, target), TRUTHS[case])


def test_every_call_is_accounted_for(tmp_path: Path) -> None:
    """A block of other operations with the same result is listed, not silently dropped."""
    bench, target = unpacked("D07_mixtral_experts_eager_vs_grouped_L1", tmp_path)
    result = compare_here(bench, target)
    assert result["statuses"] == {"replaced": 44}
    assert {f["side"] for f in result["findings"]} == {"bench", "target"}


def test_another_requires_grad_is_a_note(tmp_path: Path) -> None:
    bench, target = unpacked("D03c_llama_ckpt_reentrant_L0", tmp_path)
    assert "requires_grad" in compare_here(bench, target)["statuses"]


def test_what_only_the_target_runs_is_the_source(tmp_path: Path) -> None:
    first = compare_here(*unpacked("B04_extra_api_L1", tmp_path))["first_divergence"]
    assert first["source"]["call"] == "Tensor.__add__.3.forward"
    assert first["line"].endswith("btrain.py:33 in forward | return self.fc2(F.gelu(h))")


def test_a_call_against_the_sequence_that_stands_for_it(tmp_path: Path) -> None:
    """MindSpore runs dense as MatMul and BiasAdd between two Reshapes."""
    result = compare_here(*unpacked("D10c_ms_gelu_tanh_vs_torch_L1", tmp_path))
    assert result["read"]["only_in_bench"] == 0
    assert result["statuses"]["suspect"] == 1
    unpaired = {f["call"]: f["status"] for f in result["findings"] if f["status"] == "replaced"}
    assert "Primitive.bias_add.BiasAdd.0.forward" in unpaired
    assert "Primitive.matmul.MatMul.0.backward" in unpaired


def test_elements_are_compared_where_they_are_on_record(tmp_path: Path) -> None:
    result = compare_here(*unpacked("B06_tensor_rounded_fc1", tmp_path))
    metrics = result["first_divergence"]["metrics"]
    assert result["read"]["by_values"] == result["read"]["tensors"] == 24
    assert metrics["first_index"] == [0, 0]
    assert 0.99999 < metrics["cosine"] < 1
