"""Real small GRPO runs with one known cause each, and healthy ones that must stay the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.cli import main

from .conftest import DATA, causes

TRUTHS = json.loads((DATA / "truth.json").read_text())
WITHOUT_ROUTING = "E14_moe_routing"  # the JSON lines hold no expert choices


def folders(bundled, name: str, suffix: str = "") -> list[Path]:
    return [bundled("cases") / name / (side + suffix) for side in TRUTHS[name]["sides"]]


def wanted(name: str) -> tuple[str, list[str]]:
    cause = TRUTHS[name]["cause"]
    return ("different", [cause]) if cause else ("same", [])


def answer(result) -> tuple[str, list[str]]:
    return result["verdict"], causes(result)[:1]


@pytest.mark.parametrize("name", TRUTHS)
def test_the_cause_and_the_numbers(bundled, compare, name: str) -> None:
    truth, result = TRUTHS[name], compare(*folders(bundled, name))
    assert answer(result) == wanted(name)
    assert result["read"]["matched"] == truth["matched"]
    for key in ("log_prob", "rollout_log_prob", "old_log_prob"):
        if key in truth:
            got = {part: result["keys"][key][part] for part in truth[key]}
            assert got == pytest.approx(truth[key], rel=1e-5, abs=1e-9), key


@pytest.mark.parametrize("name", TRUTHS)
def test_sides_can_be_exchanged(bundled, compare, name: str) -> None:
    assert answer(compare(*reversed(folders(bundled, name)))) == wanted(name)


@pytest.mark.parametrize("name", [name for name in TRUTHS if name != WITHOUT_ROUTING])
def test_from_json_lines_the_same_answer(bundled, compare, name: str) -> None:
    result = compare(*folders(bundled, name, "_jsonl"))
    assert answer(result) == wanted(name)
    assert result["read"]["matched"] == TRUTHS[name]["matched"]


@pytest.mark.parametrize("name", TRUTHS)
def test_from_shards_the_very_same_result(bundled, compare, tmp_path: Path, name: str) -> None:
    sides = folders(bundled, name)
    shards = [tmp_path / side for side in "ab"]
    for source, dump in zip(sides, shards, strict=True):
        assert main(["ingest", str(source), str(dump), "--quiet"]) == 0
    ours, theirs = compare(*shards), compare(*sides)
    for part in ("verdict", "read", "keys", "findings", "trend", "warnings"):
        assert ours[part] == theirs[part], part


def test_stale_weights_name_step_and_ranks(bundled, compare) -> None:
    (finding,) = compare(*folders(bundled, "E11_stale_from_step3"))["findings"]
    assert finding["where"] == {"steps": [3, 4], "ranks": [0, 1]}


def test_a_missing_sample_is_named(bundled, compare) -> None:
    read = compare(*folders(bundled, "R06_missing_sample"))["read"]
    assert read["only_in_a"] == [{"step": 1, "rank": 1, "uid": 112, "sample": 2}]
    assert read["only_in_b"] == []


def test_a_few_outliers_of_a_healthy_run_are_listed(bundled, compare) -> None:
    warnings = compare(*folders(bundled, "E02_healthy_topk"))["warnings"]
    outliers = [w for w in warnings if w["code"] == "outlier"]
    assert {(w["step"], w["uid"], w["token"]) for w in outliers} >= {(1, 112, 0)}


def test_nan_under_the_mask_is_a_note(bundled, compare) -> None:
    (note,) = compare(*folders(bundled, "R03_nan_under_mask"))["warnings"]
    assert (note["code"], note["text"].split()[0]) == ("nonfinite_masked", "old_log_prob")
