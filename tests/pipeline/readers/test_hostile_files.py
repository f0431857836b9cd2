"""Every reader of pickles takes hostile files: nothing runs, nothing is exhausted, one error."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.readers.checkpoint.torch_file import read_torch_file
from pipeline.readers.errors import ReadError
from pipeline.readers.raw_values import read_values
from pipeline.readers.rollouts import find_parts, read_part
from tests.pickles import BROKEN, CALLABLES, WAYS, Evil, called, named, text


def read_rollouts(file: Path) -> Any:
    return read_part(find_parts(file)[0])


def read_checkpoint(file: Path) -> Any:
    saved = read_torch_file(str(file))
    if saved.unsafe:
        raise ReadError(f"names {saved.unsafe}")
    return saved.value


READERS: dict[str, Callable[[Path], Any]] = {
    "checkpoint": read_checkpoint,
    "rollouts": read_rollouts,
    "tensor": read_values,
}
UNRECOGNISED = ("rollouts", "tensor")
"""Readers that refuse whatever they do not know."""

STORAGE = (
    b"(" + text("storage") + named("torch", "FloatStorage", "GLOBAL") + text("0") + text("cpu")
) + b"K\x04tQ"
TENSOR = (
    named("torch._utils", "_rebuild_tensor_v2", "GLOBAL") + b"(" + STORAGE
) + b"K\x00K\x04\x85K\x01\x85\x89NtR"


def write(file: Path, data: bytes, form: str) -> Path:
    """Write a pickle as it is, or as the one of a file of torch.save with one storage."""
    if form == "pickle":
        file.write_bytes(data)
    else:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("a/data.pkl", data)
            archive.writestr("a/data/0", bytes(16))
    return file


def nested(width: int, depth: int) -> Any:
    """Return lists that stand in lists again and again."""
    content: Any = 1
    for _ in range(depth):
        content = [content] * width
    return content


def circle(kind: type) -> Any:
    content = kind()
    content.append(content) if kind is list else content.update(again=content)
    return content


@pytest.mark.parametrize("form", ["pickle", "zip"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reader", UNRECOGNISED)
def test_nothing_is_called(reader: str, way: str, form: str, watched: Path, tmp_path: Path) -> None:
    for number, (module, name, args) in enumerate(CALLABLES.values()):
        filled = tuple(arg.format(target=str(watched)) for arg in args)
        file = tmp_path / f"{number}.pt"
        write(file, called(module, name, filled, way), form)
        with pytest.raises(ReadError, match=file.name):
            READERS[reader](file)


@pytest.mark.parametrize("data", BROKEN)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_broken_is_an_error(reader: str, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        READERS[reader](write(tmp_path / "0.pt", data, "pickle"))


@pytest.mark.parametrize(
    "content",
    [nested(2, 40), nested(10**5, 2), nested(10**3, 30), circle(list), circle(dict)],
    ids=["laughs", "wide", "both", "list", "dict"],
)
@pytest.mark.parametrize("reader", UNRECOGNISED)
def test_what_unfolds_without_end_is_refused(reader: str, content: Any, tmp_path: Path) -> None:
    data = pickle.dumps({"responses": content, "rollout_log_probs": content})
    with pytest.raises(ReadError, match=r"exhaust memory|not a tensor"):
        READERS[reader](write(tmp_path / "0.pt", data, "pickle"))


def test_a_tensor_that_unfolds_without_end_is_refused(tmp_path: Path) -> None:
    torch.save({"responses": torch.zeros(1).expand(1 << 20, 1 << 20)}, tmp_path / "0.pt")
    with pytest.raises(ReadError, match="exhaust memory"):
        read_rollouts(tmp_path / "0.pt")


def test_samples_that_share_a_prompt_are_read(tmp_path: Path) -> None:
    prompt = list(range(1000))
    (tmp_path / "0.pt").write_bytes(pickle.dumps({"prompt_ids": [prompt] * 64, "responses": [1]}))
    values = {value.key: value for value in read_rollouts(tmp_path / "0.pt")}
    assert values["prompt_ids"].array.sum() == 64 * sum(prompt)


@pytest.mark.parametrize("ours", [STORAGE, TENSOR], ids=["storage", "tensor"])
@pytest.mark.parametrize("reader", READERS)
def test_a_storage_cannot_be_laid_over_another_file(
    reader: str, ours: bytes, tmp_path: Path
) -> None:
    """BUILD would let a tensor name any file of this machine."""
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(16))
    place = b"}" + text("place") + b"(" + text(str(secret)) + b"K\x00K\x10\x89ts"
    file = write(tmp_path / "0.pt", b"\x80\x02" + ours + place + b"b.", "zip")
    with pytest.raises(ReadError, match="sets the state"):
        READERS[reader](file)


def test_the_same_tensor_without_that_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "0.pt", b"\x80\x02" + TENSOR + b".", "zip")
    assert read_values(file).tolist() == [0.0] * 4


class DataProto:
    """What verl pickles: the tensors lie in bytes, which are a file of torch.save."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def __getstate__(self) -> Any:
        return self.packed, {"uid": ["a", "b"]}, {}


def test_a_file_inside_of_a_file_runs_nothing(tmp_path: Path) -> None:
    inner = {"responses": torch.arange(4).reshape(2, 2), "evil": Evil(tmp_path / "PWNED")}
    torch.save(inner, tmp_path / "inner")
    packed = (tmp_path / "inner").read_bytes()
    (tmp_path / "0.pkl").write_bytes(pickle.dumps(DataProto(packed)))
    values = {value.key: value for value in read_rollouts(tmp_path / "0.pkl")}
    assert values["response_ids"].array.tolist() == [[0, 1], [2, 3]]
    assert set(values) == {"response_ids", "uid"}
    assert not (tmp_path / "PWNED").exists()


def test_a_damaged_file_inside_of_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "0.pkl").write_bytes(pickle.dumps(DataProto(b"PK\x03\x04 cut")))
    with pytest.raises(ReadError, match=r"0\.pkl cannot be read"):
        read_rollouts(tmp_path / "0.pkl")
