"""Elements of saved tensors, read without torch and without running what a file holds."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.readers.errors import ReadError
from pipeline.readers.raw_values import read_values

TENSORS = {
    "float32": torch.arange(6, dtype=torch.float32).reshape(2, 3),
    "transposed": torch.arange(6, dtype=torch.float64).reshape(2, 3).t(),
    "slice": torch.arange(9).reshape(3, 3)[1:, ::2],
    "half": torch.tensor([1.5, float("inf"), float("nan")], dtype=torch.float16),
    "bool": torch.tensor([True, False]),
    "scalar": torch.tensor(3.0),
    "empty": torch.zeros(0, 3),
    "parameter": torch.nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("name", TENSORS)
def test_what_torch_saved(name: str, tmp_path: Path) -> None:
    torch.save(TENSORS[name], tmp_path / "t.pt")
    found = read_values(tmp_path / "t.pt")
    np.testing.assert_array_equal(found, TENSORS[name].detach().numpy())


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    tensor = torch.tensor([1.0, -3.140625, 1e30], dtype=torch.bfloat16)
    torch.save(tensor, tmp_path / "t.pt")
    np.testing.assert_array_equal(read_values(tmp_path / "t.pt"), tensor.float().numpy())


def test_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.eye(3))
    np.testing.assert_array_equal(read_values(tmp_path / "t.npy"), np.eye(3))


class _Marker:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def test_code_in_a_file_does_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    torch.save(_Marker(marker), tmp_path / "t.pt")
    np.save(tmp_path / "t.npy", np.array([_Marker(marker)], dtype=object), allow_pickle=True)
    for file in ("t.pt", "t.npy"):
        with pytest.raises(ReadError):
            read_values(tmp_path / file)
    assert not marker.exists()


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", pickle.dumps([1])])
def test_broken_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.pt").write_bytes(content)
    with pytest.raises(ReadError):
        read_values(tmp_path / "t.pt")
