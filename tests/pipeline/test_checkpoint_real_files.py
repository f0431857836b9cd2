"""Real checkpoints of many writers, with their truths, in both directions and by the command."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pipeline.checkpoint_compare import local_engine
from pipeline.cli import main
from tests.checkpoints import compare, found
from tests.conftest import DATA, truths

TRUTHS = truths("checkpoint")
BROKEN = [name for name, truth in TRUTHS.items() if "unsafe" in truth or "file_errors" in truth]
ODD = ("N12", "N13", "N15", "N16", "P04")
PLAIN = [name for name in TRUTHS if name not in BROKEN and not name.startswith(ODD)]


@pytest.fixture
def case(tmp_path: Path) -> Any:
    def unpacked(name: str) -> Path:
        (name,) = [known for known in TRUTHS if known.startswith(name)]
        with tarfile.open(DATA / "checkpoint" / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path / "case", filter="data")
        return tmp_path / "case"

    return unpacked


@pytest.mark.parametrize("name", PLAIN)
def test_what_differs(case: Any, name: str) -> None:
    folder, want = case(name), TRUTHS[name]["differences"]
    result = compare(folder / "ckpt1", folder / "ckpt2")
    assert result["verdict"] == ("different" if want else "same")
    got = dict(found(result))
    assert set(got) == set(want)
    assert all(got[k] == index for k, index in want.items() if index)
    assert compare(folder / "ckpt2", folder / "ckpt1")["verdict"] == result["verdict"]


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("side", ["ckpt1", "ckpt2"])
def test_every_checkpoint_is_the_same_as_itself(case: Any, name: str, side: str) -> None:
    folder = case(name)
    result = compare(folder / side, folder / side, optimizer=True)
    assert found(result) == []
    damaged = name in BROKEN and side == "ckpt2"
    assert result["verdict"] == ("unknown" if damaged else "same")


@pytest.mark.parametrize("name", BROKEN)
def test_unsafe_and_broken_files_are_named(
    case: Any, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, truth = case(name), TRUTHS[name]
    work = folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    command = ["checkpoint", str(folder / "ckpt1"), str(folder / "ckpt2"), "--quiet"]
    assert main([*command, "--out", str(folder / "out")]) == 2
    assert os.listdir(work) == []  # no file's code was run
    assert not list(folder.rglob("PWNED"))
    told = capsys.readouterr().err
    bad = truth.get("unsafe") or truth["file_errors"]
    assert all(file.removeprefix("ckpt2/") in told for file in bad)
    result = json.loads((folder / "out" / "result.json").read_text())
    assert result["verdict"] == "unknown"
    assert result["read"]["equal"] > 0
    assert len([w for w in result["warnings"] if w["code"].startswith("file_")]) == len(bad)


def test_optimizer_nested_and_flattened(case: Any) -> None:
    folder = case("D04")
    result = compare(folder / "ckpt1", folder / "ckpt2", optimizer=True)
    assert (result["verdict"], result["read"]["equal"]) == ("same", 12 + 36)


def test_optimizer_of_fsdp1_and_fsdp2(case: Any) -> None:
    folder = case("D07")
    result = compare(folder / "ckpt1", folder / "ckpt2", optimizer=True)
    assert (result["verdict"], result["read"]["equal"]) == ("same", 12 + 36)


def test_extra_states(case: Any) -> None:
    folder = case("N12")
    result = compare(folder / "ckpt1", folder / "ckpt2")
    assert (result["verdict"], result["read"]["equal"]) == ("same", 4)
    assert dict(found(result, "opaque")) == dict.fromkeys(
        TRUTHS["N12_extra_state_kinds"]["differences"]
    )


def test_masters_by_name(case: Any) -> None:
    folder = case("N13")
    result = compare(folder / "ckpt1", folder / "ckpt2", optimizer=True)
    name = "optimizer.model.layers.0.mlp.up_proj.weight.fp32_param"
    assert found(result) == [(name, [1, 1])]
    assert result["read"]["equal"] == 10 + 4 * 10 - 1
    assert compare(folder / "ckpt1", folder / "ckpt2")["verdict"] == "same"


def test_values_that_are_no_tensors(case: Any) -> None:
    folder = case("N15")
    result = compare(folder / "ckpt1", folder / "ckpt2", every=True)
    assert result["verdict"] == "same"
    hints = {f["name"]: f["hint"] for f in result["findings"] if f["status"] == "opaque"}
    assert hints["epoch"] == "3 against 4; not a tensor"
    assert hints["hyper.lr"] == "0.001 against 0.0001; not a tensor"
    equal = {f["name"] for f in result["findings"] if f["status"] == "equal"}
    assert {"module.weight", "module.bias"} <= equal or {"weight", "bias"} <= equal


def test_names_and_shapes(case: Any) -> None:
    folder = case("N16")
    result = compare(folder / "ckpt1", folder / "ckpt2")
    hints = {(f["name"], f["status"]): f["hint"] for f in result["findings"]}
    assert hints == {
        ("a.weight", "different"): "shape [4, 6] against [6, 4]; the same elements in the same "
        "order, in another shape",
        ("b.bias", "only_in_a"): "",
        ("c.bias", "only_in_b"): "",
        ("a.bias", "rounded"): "float32 against float64, equal values",
    }


def test_a_net_one_step_on(case: Any) -> None:
    folder = case("P04")
    result = compare(folder / "ckpt1", folder / "ckpt2")
    assert {name for name, _ in found(result)} == set(TRUTHS["P04_ms_net_two_steps"]["differences"])
    more = compare(folder / "ckpt1", folder / "ckpt2", optimizer=True)
    names = {name for name, _ in found(more)}
    assert {"optimizer.norm.gamma.exp_avg", "optimizer.global_step"} <= names
    assert "optimizer.learning_rate" not in names


def test_several_workers_give_the_same(case: Any) -> None:
    from pipeline.checkpoint_compare import Question, compare_checkpoints
    from pipeline.settings import limits

    folder = case("M07")
    question = Question(folder / "ckpt1", folder / "ckpt2", every=True)
    alone = compare(folder / "ckpt1", folder / "ckpt2", every=True)
    with compare_checkpoints(question, limits(1), lambda size: local_engine(size, 4)) as (two, _):
        two["read"]["seconds"] = alone["read"]["seconds"]
        assert two == alone
