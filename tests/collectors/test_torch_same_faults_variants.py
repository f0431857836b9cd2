"""Variants of the planted faults that no dump of the incumbent shows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ..conftest import Analyze
from . import same_faults_tensor as tensor
from .same_faults import run_ranks
from .same_faults_variants import WAYS
from .test_torch_same_faults import operation

LOG, EXP = ("log", "0", "forward"), ("exp", "0", "forward")


@pytest.mark.parametrize("way", WAYS)
def test_what_a_collective_brings_is_known_however_it_is_waited_for(
    way: str, analyze: Analyze, tmp_path: Path
) -> None:
    assert run_ranks(WAYS[way], 2, 1, tmp_path / "dump") == [0, 0]
    (origin,) = analyze(tmp_path / "dump")["origins"]
    assert (origin["step"], origin["rank"], origin["kind"]) == (0, 1, "compute")
    assert operation(origin["call"]) == (LOG if "coalesced" in way else EXP)
    assert origin["certainty"] == "lineage"
    assert origin["reached"] == [0]


@pytest.fixture(scope="module")
def underflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dump in which rank 2 made -inf; its own record has two parts."""
    dump = tmp_path_factory.mktemp("underflow") / "dump"
    assert run_ranks(tensor.energy, 4, 1, dump) == [0] * 4
    return dump


@pytest.mark.parametrize("how", ["cut", "empty", "gone"])
@pytest.mark.parametrize("table", ["calls", "tensors"])
def test_half_a_part_is_no_part(
    underflow: Path, analyze: Analyze, tmp_path: Path, table: str, how: str
) -> None:
    """Calls whose tensors cannot be read are not taken for calls that read nothing."""
    result = analyze(damaged(underflow, tmp_path, f"{table}-00001.parquet", how))
    (origin,) = result["origins"]
    assert (origin["rank"], operation(origin["call"])) == (2, LOG)
    assert origin["reached"] == [0, 1, 3]
    assert {w["rank"] for w in result["warnings"]} == {2}


@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_first_part_that_is_missing_is_missed(
    underflow: Path, analyze: Analyze, tmp_path: Path, how: str
) -> None:
    """What was made in a lost part was not handed in from outside."""
    dump = damaged(underflow, tmp_path, "calls-00000.parquet", how)
    result = analyze(damaged(dump, tmp_path, "tensors-00000.parquet", how))
    assert {w["rank"] for w in result["warnings"]} == {2}
    (origin,) = result["origins"]
    assert origin["rank"] == 2
    assert (origin["kind"], origin["certainty"]) != ("input", "lineage")


@pytest.mark.parametrize("lost", range(3))
def test_the_origin_is_the_same_whoever_else_left_no_record(
    analyze: Analyze, tmp_path: Path, lost: int
) -> None:
    dump = tmp_path / "dump"
    assert run_ranks(tensor.both_groups, 4, 2, dump) == [0] * 4
    shutil.rmtree(dump / "step=0" / f"rank={lost}")
    (origin,) = analyze(dump)["origins"]
    assert (origin["rank"], operation(origin["call"])) == (3, LOG)
    assert origin["reached"] == [rank for rank in range(3) if rank != lost]


@pytest.mark.parametrize("scenario", [tensor.energy, tensor.both_groups])
def test_a_lost_origin_is_named_by_its_rank(
    analyze: Analyze, tmp_path: Path, scenario: Any
) -> None:
    dump, rank = tmp_path / "dump", 2 if scenario is tensor.energy else 3
    assert run_ranks(scenario, 4, 2, dump) == [0] * 4
    shutil.rmtree(dump / "step=0" / f"rank={rank}")
    (origin,) = analyze(dump)["origins"]
    assert (origin["rank"], origin["kind"]) == (rank, "unrecorded")
    assert origin["reached"] == [other for other in range(4) if other != rank]


def damaged(dump: Path, target: Path, file: str, how: str) -> Path:
    """Return a copy of a dump in which one file of rank 2 is cut, empty or gone."""
    copy = target / "damaged"
    if dump != copy:
        shutil.copytree(dump, copy)
    path = copy / "step=0" / "rank=2" / file
    if how == "gone":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) * 6 // 10 if how == "cut" else 0])
    return copy
