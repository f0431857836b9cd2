"""Damaged and odd safetensors; what is wrong is said, and nothing is made up."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline.readers.checkpoint.opening import open_checkpoint
from tests.checkpoints import compare, found


def write(path: Path, header: Any, data: bytes = b"\0" * 64, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(**changes: Any) -> dict[str, Any]:
    return {"w": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64], **changes}}


@pytest.mark.parametrize(
    ("header", "length", "words"),
    [
        (entry(), 2**40, "header does not fit"),
        (b"{not json", None, "header cannot be read"),
        (entry(dtype="F13"), None, "dtype F13"),
        (entry(shape=[4, 5]), None, "does not fit its shape"),
        (entry(shape=[-4, -4]), None, "does not fit its shape"),
        (entry(data_offsets=[-64, 0]), None, "does not fit its shape"),
        (entry(shape=[5, 4], data_offsets=[0, 80]), None, "cut off"),
        ({"w": {"dtype": "F32"}}, None, "header cannot be read"),
        ([1, 2], None, "header cannot be read"),
    ],
)
def test_damaged(tmp_path: Path, header: Any, length: int | None, words: str) -> None:
    path = write(tmp_path / "a.safetensors", header, length=length)
    (problem,) = open_checkpoint(path).problems
    assert problem.code == "file_unreadable"
    assert words in problem.text
    assert str(path) in problem.text


def test_both_kinds_of_files_in_a_folder(tmp_path: Path) -> None:
    """The index of safetensors wins, as it does in transformers."""
    one, other = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)
    folder = tmp_path / "both"
    folder.mkdir()
    save_file({"w": one}, folder / "model.safetensors")
    (folder / "pytorch_model.bin").write_bytes(b"not read")
    save_file({"w": other}, tmp_path / "b.safetensors")
    assert found(compare(folder, tmp_path / "b.safetensors")) == [("w", [0, 0])]


def test_an_index_that_names_what_its_file_does_not_hold(tmp_path: Path) -> None:
    save_file({"w": np.ones(2, np.float32)}, tmp_path / "m.safetensors")
    index = {"weight_map": {"w": "m.safetensors", "x": "m.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (problem,) = open_checkpoint(tmp_path).problems
    assert (problem.code, problem.tensors) == ("file_missing", ("x",))


def test_an_index_cannot_leave_its_folder(tmp_path: Path) -> None:
    save_file({"w": np.ones(2, np.float32)}, tmp_path / "secret.safetensors")
    folder = tmp_path / "m"
    folder.mkdir()
    index = {"weight_map": {"w": "../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert open_checkpoint(folder).tensors == {}
