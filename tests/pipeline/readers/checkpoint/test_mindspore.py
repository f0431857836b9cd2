"""MindSpore's protobuf, written by hand as its format says: split, with a checksum, damaged."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline.readers.checkpoint.opening import open_checkpoint
from pipeline.readers.errors import ReadError
from tests.checkpoints import compare


def varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def record(tag: str, dims: tuple[int, ...], kind: str, content: bytes) -> bytes:
    shape = b"".join(b"\x08" + varint(n) for n in dims)
    tensor = shape + field(2, kind.encode()) + field(3, content)
    return field(1, field(1, tag.encode()) + field(2, tensor))


WEIGHT = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_a_parameter_in_several_records(tmp_path: Path) -> None:
    """More than 512 MiB are split, in the middle of a row if it falls so."""
    data = WEIGHT.tobytes()
    pieces = [data[:20], data[20:28], data[28:]]
    records = b"".join(record("net.weight", (3, 4), "Float32", piece) for piece in pieces)
    (tmp_path / "a.ckpt").write_bytes(records + record("net.bias", (2,), "Float32", data[:8]))
    save_file({"net.weight": WEIGHT, "net.bias": WEIGHT[0, :2]}, tmp_path / "b.safetensors")
    result = compare(tmp_path / "a.ckpt", tmp_path / "b.safetensors")
    assert (result["verdict"], result["read"]["equal"]) == ("same", 2)


def test_names_of_mindspore_and_torch(tmp_path: Path) -> None:
    names = {
        "norm.gamma": "norm.weight",
        "norm.beta": "norm.bias",
        "tok.embedding_table": "tok.weight",
        "bn.moving_mean": "bn.running_mean",
    }
    records = [record(name, (3, 4), "Float32", WEIGHT.tobytes()) for name in names]
    (tmp_path / "a.ckpt").write_bytes(b"".join(records))
    save_file(dict.fromkeys(names.values(), WEIGHT), tmp_path / "b.safetensors")
    result = compare(tmp_path / "a.ckpt", tmp_path / "b.safetensors")
    assert (result["verdict"], result["read"]["equal"]) == ("same", 4)


@pytest.mark.parametrize("fits", [True, False])
def test_checksum(tmp_path: Path, fits: bool) -> None:
    data = record("w", (3, 4), "Float32", WEIGHT.tobytes())
    crc = zlib.crc32(data) ^ (not fits)
    (tmp_path / "a.ckpt").write_bytes(data + b"crc_num" + crc.to_bytes(10, "big"))
    contents = open_checkpoint(tmp_path / "a.ckpt")
    assert list(contents.tensors) == (["w"] if fits else [])
    assert [p.code for p in contents.problems] == ([] if fits else ["file_unreadable"])


def test_values_of_append_dict(tmp_path: Path) -> None:
    data = record("step_num", (), "Int64", (7).to_bytes(8, "little"))
    data += record("note", (0,), "str", "hi".encode("utf-32-le"))
    data += record("w", (3, 4), "Float32", WEIGHT.tobytes())
    (tmp_path / "a.ckpt").write_bytes(data)
    assert open_checkpoint(tmp_path / "a.ckpt").values == {"step_num": 7, "note": "hi"}


@pytest.mark.parametrize("cut", [1, 30, 45])
def test_cut_off(tmp_path: Path, cut: int) -> None:
    data = record("w", (3, 4), "Float32", WEIGHT.tobytes()) * 1
    (tmp_path / "a.ckpt").write_bytes(
        data + record("x", (3, 4), "Float32", WEIGHT.tobytes())[:-cut]
    )
    (problem,) = open_checkpoint(tmp_path / "a.ckpt").problems
    assert problem.code == "file_unreadable"
    assert "cut off" in problem.text


def test_encrypted(tmp_path: Path) -> None:
    """It begins with the length of the first block, not with a record."""
    noise = np.random.default_rng(0).bytes(400)
    (tmp_path / "a.ckpt").write_bytes((400).to_bytes(4, "little") + noise)
    contents = open_checkpoint(tmp_path / "a.ckpt")
    assert [p.code for p in contents.problems] == ["file_unreadable"]
    assert "encrypted" in contents.problems[0].text


def test_bfloat16(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(record("w", (2,), "BFloat16", b"\x80\x3f\x00\x40"))
    contents = open_checkpoint(tmp_path / "a.ckpt")
    assert contents.tensors["w"].dtype == "bfloat16"
    with pytest.raises(ReadError, match="does not exist"):
        open_checkpoint(tmp_path / "b.ckpt")
