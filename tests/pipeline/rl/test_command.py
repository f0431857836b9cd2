"""The command line of `rl`: output, sheets, engines, errors."""

from __future__ import annotations

import csv
import json
from io import BytesIO
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from collectors import SingleComparator
from collectors.errors import CrossrankError
from pipeline.cli import main
from pipeline.engine_local import LocalEngine
from pipeline.engine_ray import RayEngine
from pipeline.rl_sheets import COLUMNS
from pipeline.rl_sheets import sheet as make_sheet

from ...rollouts import Rollouts, save

ROOT = Path(__file__).parents[3]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    run = Rollouts()
    a, b = save(run.engine(), tmp_path / "a"), save(run.trainer(1.0), tmp_path / "b")
    return str(a), str(b)


def test_json_on_stdout_and_nothing_else(sides, tmp_path: Path, capsys) -> None:
    assert main(["rl", *sides, "--out", str(tmp_path / "o"), "--json", "--fail-on", "found"]) == 3
    result = json.loads(capsys.readouterr().out)
    assert (result["tool"], result["findings"][0]["cause"]) == ("rl", "temperature")
    assert result == json.loads((tmp_path / "o" / "result.json").read_text())


def test_text(sides, tmp_path: Path, capsys) -> None:
    assert main(["rl", *sides, "--out", str(tmp_path / "o"), "--quiet"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "temperature in log_prob, steps 0, 1, ranks 0, 1."
    assert second.startswith("joined 32 samples by (step, uid, sample_index); an engine against")


def test_two_keys_of_one_run(sides, tmp_path: Path, capsys) -> None:
    pair = ["--pair", "rollout_log_prob", "log_prob"]
    assert main(["rl", sides[1], *pair, "--out", str(tmp_path / "o"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["read"]["mode"], result["read"]["matched"]) == ("keys", 32)
    evidence = result["findings"][0]["evidence"]
    assert "T(rollout_log_prob) / T(log_prob) = 0.7" in evidence


def test_some_steps(sides, tmp_path: Path, capsys) -> None:
    assert main(["rl", *sides, "--step", "1", "--out", str(tmp_path / "o"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["read"]["steps"] == [1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "give two collections"),
        (["a", "b", "--pair", "x", "y"], "give two collections"),
        (["a", "nowhere"], "nowhere does not exist"),
        (["a", "empty"], "holds no RL data"),
        (["a", "b", "--step", "9"], "its steps are [0, 1]"),
    ],
)
def test_what_a_user_can_cause(
    sides, tmp_path: Path, monkeypatch, capsys, arguments, message
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["rl", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_pair_that_is_not_there_is_unknown_and_told_of(sides, tmp_path: Path, capsys) -> None:
    assert (
        main(["rl", sides[1], "--pair", "log_prob", "nothing", "--out", str(tmp_path / "o")]) == 2
    )
    assert "nothing" in capsys.readouterr().err


@pytest.fixture
def engines(cluster):
    return [LocalEngine(1), LocalEngine(2), RayEngine(2, None)]


def test_every_engine_gives_the_same(compare, sides, engines) -> None:
    results = [compare(Path(sides[0]), Path(sides[1]), engine=engine) for engine in engines]
    assert results[0] == results[1] == results[2]
    assert results[0]["verdict"] == "different"


def test_a_large_step_is_measured_key_by_key(compare, sides, monkeypatch) -> None:
    whole = compare(Path(sides[0]), Path(sides[1]))
    monkeypatch.setattr("pipeline.rl_analysis.STEP_BYTES", 0)
    assert compare(Path(sides[0]), Path(sides[1])) == whole


PEER = list(COLUMNS.values())[:12]


def peer_rows(folder: Path, key: str) -> list[dict[str, str]]:
    with (folder / "peer_result" / "csv" / f"{key}__Sheet1.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def sheet(file: Path) -> list[dict[str, object]]:
    rows = list(openpyxl.load_workbook(file).active.iter_rows(values_only=True))
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_sheets_begin_with_the_columns_of_msprobe(bundled, tmp_path: Path) -> None:
    folder = bundled("single_save") / "C01_rl_single_save"
    assert (
        main(["rl", str(folder / "run1"), str(folder / "run2"), "--out", str(tmp_path / "o")]) == 0
    )
    for file in sorted((tmp_path / "o").glob("*.xlsx")):
        rows = sheet(file)
        theirs = peer_rows(folder, file.stem)
        assert list(rows[0])[:12] == list(theirs[0]) == PEER
        ours = {(r["step"], r["rank"], r["micro_step"], r["id"]) for r in rows}
        assert ours == {tuple(int(r[c]) for c in PEER[:4]) for r in theirs}


def test_a_page_holds_no_more_rows_than_excel_opens(monkeypatch) -> None:
    monkeypatch.setattr("pipeline.rl_sheets.PAGE_ROWS", 2)
    rows = [[step, *[None] * (len(COLUMNS) - 1)] for step in range(5)]
    book = openpyxl.load_workbook(BytesIO(make_sheet(("k", rows))))
    assert [
        [row[0] for row in page.iter_rows(min_row=2, values_only=True)] for page in book.worksheets
    ] == [[0, 1], [2, 3], [4]]
    assert all(page["A1"].value == "step" for page in book.worksheets)


@pytest.mark.parametrize("key", ["log_prob", "reward", "prompt", "ref_log_prob"])
def test_numbers_of_msprobe_where_shapes_agree(bundled, tmp_path: Path, key: str) -> None:
    folder = bundled("single_save") / "C01_rl_single_save"
    main(
        ["rl", str(folder / "run1"), str(folder / "run2"), "--out", str(tmp_path / "o"), "--quiet"]
    )
    ours = {tuple(r[c] for c in PEER[:4]): r for r in sheet(tmp_path / "o" / f"{key}.xlsx")}
    compared = 0
    for row in peer_rows(folder, key):
        if row["shape1"] == row["shape2"]:
            mine = ours[tuple(int(row[c]) for c in PEER[:4])]
            for column in (PEER[6], *PEER[8:]):
                assert mine[column] == pytest.approx(float(row[column]), rel=1e-4, abs=1e-7), column
            first = None if row[PEER[7]] == "" else int(float(row[PEER[7]]))
            assert mine[PEER[7]] == first
            compared += 1
    assert compared >= 8


DIFFER = {  # what was planted, by key: steps, ranks and micro steps that differ
    "response": {(1, 1, 0), (1, 1, 1)} | {(2, r, m) for r in (0, 1) for m in (0, 1)},
    "log_prob": {(s, r, m) for s in (0, 1, 2) for r in (0, 1) for m in (0, 1)},
    "ref_log_prob": {(2, r, m) for r in (0, 1) for m in (0, 1)},
    "reward": {(s, r, 1) for s in (0, 1, 2) for r in (0, 1)},
    "mask": {(1, r, 0) for r in (0, 1)} | {(2, r, m) for r in (0, 1) for m in (0, 1)},
    "prompt": set(),
}


@pytest.mark.parametrize("key", DIFFER)
def test_every_planted_difference_and_no_other(bundled, compare, stores, key: str) -> None:
    folder = bundled("single_save") / "C01_rl_single_save"
    compare(folder / "run1", folder / "run2")
    rows = [row for row in stores[-1].rows("rl/array_rows") if row["name"] == key]
    assert len(rows) >= 12
    assert {(r["step"], r["rank"], r["micro"]) for r in rows if r["equal"] < 100} == DIFFER[key]


def test_findings_of_the_planted_differences(bundled, compare) -> None:
    folder = bundled("single_save") / "C01_rl_single_save"
    result = compare(folder / "run1", folder / "run2")
    found = {(f["cause"], f["keys"][0]) for f in result["findings"]}
    assert {
        ("reward", "reward"),
        ("values", "response_ids"),
        ("mask", "response_mask"),
        ("longer_response", "response_ids"),
        ("nan", "kl_loss"),
        ("values", "extra"),
        ("shape", "logits_list"),
        ("configuration", "configurations.json"),
    } <= found
    lone = {w["key"] for w in result["warnings"] if w["code"] == "key_missing"}
    assert lone == {"only_run1", "only_run2"}


def test_from_a_script(sides, tmp_path: Path) -> None:
    result = SingleComparator.compare(*sides, tmp_path / "o")
    assert result["verdict"] == "different"
    assert (tmp_path / "o" / "log_prob.xlsx").exists()
    with pytest.raises(CrossrankError, match="does not exist"):
        SingleComparator.compare(sides[0], tmp_path / "nowhere", tmp_path / "o2")


def test_numbers_that_are_equal_are_equal_however_they_are_stored(compare, tmp_path: Path) -> None:
    values = {"uid": np.array([2**53 + 1, 2**53 + 2]), "x": np.array([1.5, 2.5])}
    other = values | {"x": np.array([1.5, 2.5], "f4")}
    a, b = save({(0, 0, 0): values}, tmp_path / "a"), save({(0, 0, 0): other}, tmp_path / "b")
    result = compare(a, b)
    assert (result["verdict"], result["read"]["matched"]) == ("same", 2)
