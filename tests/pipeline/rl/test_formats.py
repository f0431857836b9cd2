"""What trainers write: every layout is read, and nothing in it is run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.cli import main
from pipeline.readers.errors import ReadError
from pipeline.readers.rollouts import find_parts, read_part

PAIRS = {
    "verl/batch_torch.pkl": "old_log_prob",
    "verl/batch_numpy.pkl": "old_log_prob",
    "slime/train_data/0.pt": "log_prob",
    "openrlhf/experience.pt": "old_log_prob",
    "areal/trajectory.pt": "old_log_prob",
}


@pytest.mark.parametrize("file", PAIRS)
def test_the_same_samples_from_every_trainer(bundled, compare, file: str) -> None:
    folder = bundled("formats") / "F01_formats"
    result = compare(folder / file, keys=("rollout_log_prob", PAIRS[file]))
    numbers = result["keys"]["log_prob"]
    assert (result["verdict"], result["read"]["matched"], numbers["n"]) == ("same", 16, 110)
    assert numbers["mean_abs"] == pytest.approx(0.010493795, rel=1e-6)
    assert numbers["max_abs"] == pytest.approx(0.0711081, rel=1e-5)
    assert numbers["max_at"]["token"] == 5


def test_inputs_of_the_loss_of_trl(bundled, compare) -> None:
    file = bundled("formats") / "F01_formats" / "trl" / "loss_inputs.pt"
    numbers = compare(file, keys=("rollout_log_prob", "old_log_prob"))["keys"]["log_prob"]
    assert (numbers["n"], numbers["max_abs"]) == (26, pytest.approx(2.38419e-06, rel=1e-4))


def test_slime_engine_against_slime_trainer(bundled, compare) -> None:
    folder = bundled("formats") / "F01_formats" / "slime"
    result = compare(folder / "rollout_data", folder / "train_data")
    assert (result["verdict"], result["read"]["mode"]) == ("same", "engine")
    assert result["keys"]["log_prob"]["n"] == 110


@pytest.mark.parametrize(
    ("path", "step", "samples", "key"),
    [
        ("verl/rollout_data", 0, 16, "response_text"),
        ("areal/rollout", 0, 16, "response_text"),
        ("trl/completions_00001.parquet", 1, 8, "prompt_text"),
    ],
)
def test_texts(bundled, path: str, step: int, samples: int, key: str) -> None:
    part = find_parts(bundled("formats") / "F01_formats" / path)[-1]
    values = {value.key: value for value in read_part(part)}
    assert part.step == step
    assert values[key].shape == (samples,)
    assert values["reward"].shape == (samples,)


def test_texts_of_one_run_agree(bundled, compare) -> None:
    folder = bundled("formats") / "F01_formats"
    result = compare(folder / "verl" / "rollout_data", folder / "slime" / "rollout_data")
    assert result["read"]["matched"] > 0
    assert "prompt text" in result["read"]["matched_by"]


class Bomb:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_a_pickle_is_never_run(tmp_path: Path, how: str) -> None:
    file, marker = tmp_path / "batch.pkl", tmp_path / "ran"
    content = {"responses": torch.zeros(2, 3, dtype=torch.int64), "extra": Bomb(marker)}
    if how == "torch":
        torch.save(content, file)
    else:
        file.write_bytes(pickle.dumps({"responses": np.zeros((2, 3)), "extra": Bomb(marker)}))
    values = read_part(find_parts(file)[0])
    assert [value.key for value in values] == ["response_ids"]
    assert not marker.exists()


@pytest.mark.parametrize("content", [b"", b"no pickle", b"PK\x03\x04 cut"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "batch.pkl"
    file.write_bytes(content)
    with pytest.raises(ReadError, match=r"batch.pkl cannot be read"):
        read_part(find_parts(file)[0])


def test_a_tensor_beyond_its_storage_is_refused(tmp_path: Path) -> None:
    whole, cut = torch.arange(100), tmp_path / "cut.pt"
    torch.save({"responses": whole.reshape(10, 10)}, cut)
    import zipfile

    with zipfile.ZipFile(cut) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(cut, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content[:80] if "/data/0" in name else content)
    with pytest.raises(ReadError, match="beyond its storage"):
        read_part(find_parts(cut)[0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("1.jsonl", "{broken", "line 1 is no JSON"),
        ("1.jsonl", "[1, 2]", "one sample a line"),
        ("data/uid/step0/rank0/micro_step0/uid.npy", "no array", "cannot be read"),
    ],
)
def test_one_clear_line_and_exit_2(
    tmp_path: Path, capsys, name: str, content: str, message: str
) -> None:
    file = tmp_path / "dump" / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    assert (
        main(["rl", str(tmp_path / "dump"), str(tmp_path / "dump"), "--out", str(tmp_path / "o")])
        == 2
    )
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert message in error
    assert file.name in error


def test_bare_nan_of_json(tmp_path: Path) -> None:
    row = {
        "input": "p",
        "output": "r",
        "score": float("nan"),
        "step": 3,
        "rollout_log_probs": [-1.0, None],
    }
    (tmp_path / "3.jsonl").write_text(json.dumps(row))
    (part,) = find_parts(tmp_path)
    values = {value.key: value.array for value in read_part(part)}
    assert part.step == 2
    assert np.isnan(values["reward"][0])
    assert np.isnan(values["rollout_log_prob"][0, 1])
