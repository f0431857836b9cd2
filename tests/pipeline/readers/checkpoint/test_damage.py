"""Random damage to real files: an answer or one clear error, never a crash or a false same."""

from __future__ import annotations

import pickle
import random
import shutil
import tarfile
from pathlib import Path

import pytest

from pipeline.readers.errors import ReadError
from tests.checkpoints import compare
from tests.conftest import DATA

CASES = {
    "A01_accelerate_vs_hf": "*.safetensors",
    "D07_dcp_fsdp1_optim_vs_fsdp2_optim": ".metadata",
    "E02_megatron_ckpt_tp2pp2_vs_tp1pp1": "*/*/model_optim_rng.pt",
    "M08_mg_dist_tp1_vs_tp2pp2": "*/common.pt",
    "N09_odd_tensors": "*.pt",
    "P04_ms_net_two_steps": "*.ckpt",
    "S07_zero2_vs_zero3_3ranks_padding": "*/*_states.pt",
}


@pytest.mark.parametrize("name", CASES)
def test_flipped_and_cut_bytes(tmp_path: Path, name: str) -> None:
    with tarfile.open(DATA / "checkpoint" / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    rng = random.Random(name)
    good = tmp_path / "ckpt1"
    told: list[bool] = []
    for attempt in range(25):
        bad = tmp_path / f"bad{attempt}"
        shutil.copytree(good, bad)
        file = rng.choice(sorted(bad.glob(CASES[name])))
        file.chmod(0o600)
        data = bytearray(file.read_bytes())
        for _ in range(rng.choice([1, 1, 3, 20])):
            data[rng.randrange(min(len(data), 6000))] ^= 1 << rng.randrange(8)
        if attempt % 5 == 0:
            del data[rng.randrange(len(data)) :]
        file.write_bytes(data)
        try:
            result = compare(good, bad, optimizer=True)
        except ReadError as error:
            told.append(str(bad) in str(error))
        else:
            assert result["verdict"] in ("same", "different", "unknown")
            if attempt % 5 == 0:
                assert result["verdict"] != "same"
    assert all(told)


@pytest.mark.parametrize(
    "content", [b"hello\n", b"{}", b"\x7fELF\x02\x01", b"<html><body>404</body>"]
)
def test_what_is_no_checkpoint_is_told_by_its_first_bytes(tmp_path: Path, content: bytes) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(content)
    result = compare(tmp_path / "a", tmp_path / "b")
    assert result["verdict"] == "unknown"
    texts = [warning["text"] for warning in result["warnings"]]
    assert len(texts) == 2
    assert all(f"is no checkpoint: it begins with {content[:12]!r}" in text for text in texts)


def test_a_pickle_that_is_cut_off_is_told_as_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(pickle.dumps({"weight": [1.5] * 9})[:-20])
    result = compare(tmp_path / "a", tmp_path / "b")
    assert result["verdict"] == "unknown"
    assert all("its pickle cannot be read" in warning["text"] for warning in result["warnings"])
