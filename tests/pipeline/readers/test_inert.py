"""No pickle runs anything: every opcode that can name, call or change something is tried."""

from __future__ import annotations

import copyreg
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.readers.checkpoint.torch_file import KNOWN, read_torch_file
from pipeline.readers.errors import ReadError
from pipeline.readers.inert import STANDARD, Plain, Record, unpickle
from tests.checkpoints import compare
from tests.pickles import BROKEN, CALLABLES, WAYS, Evil, called, named, text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", CALLABLES)
def test_nothing_is_called(which: str, way: str, watched: Path) -> None:
    module, name, args = CALLABLES[which]
    filled = tuple(arg.format(target=str(watched)) for arg in args)
    value, unsafe = unpickle(called(module, name, filled, way), KNOWN, lambda pid: pid)
    last = name.rpartition(".")[2]
    assert way == "NEWOBJ" or way == "NEWOBJ_EX" or any(u.endswith(last) for u in unsafe)
    assert isinstance(value, (Record, Plain, dict))


@pytest.mark.parametrize("how", ["GLOBAL", "STACK_GLOBAL", "memoised"])
def test_every_way_to_name_is_seen(how: str) -> None:
    data = b"\x80\x04" + named("os", "system", how) + b"."
    value, unsafe = unpickle(data, KNOWN, lambda pid: pid)
    assert unsafe == ["os.system"]
    assert isinstance(value, type)
    assert issubclass(value, Record)


@pytest.mark.parametrize("data", BROKEN)
def test_what_is_broken_is_an_error(data: bytes) -> None:
    def storage(pid: Any) -> Any:
        raise ReadError("names no storage")

    with pytest.raises(ReadError):
        unpickle(data, KNOWN, storage)


def test_a_place_in_the_memo_beyond_the_file_reserves_nothing() -> None:
    value, _ = unpickle(b"\x80\x02Nr\xff\xff\xff\xff.", KNOWN, lambda pid: pid)
    assert value is None


def test_a_registered_extension_is_not_used(watched: Path) -> None:
    copyreg.add_extension("os", "system", 77)
    try:
        _, unsafe = unpickle(b"\x80\x04\x82\x4d.", KNOWN, lambda pid: pid)
        assert unsafe == ["os.system"]
    finally:
        copyreg.remove_extension("os", "system", 77)


@pytest.mark.parametrize("name", [*STANDARD, *KNOWN])
def test_state_cannot_be_set_on_what_is_ours(name: str) -> None:
    """BUILD with a dictionary or with slots would change a function for all later files."""
    module, _, last = name.rpartition(".")
    ours = {**STANDARD, **KNOWN}[name]
    before = dict(vars(ours)) if isinstance(ours, type) else ours.make
    slots = b"N}" + text("make") + text("system") + b"s\x86"
    for state in (b"}" + text("make") + b"K\x01s", slots):
        data = b"\x80\x04" + named(module, last, "STACK_GLOBAL") + state + b"b."
        with pytest.raises(ReadError):
            unpickle(data, KNOWN, lambda pid: pid)
    assert before == (dict(vars(ours)) if isinstance(ours, type) else ours.make)


def test_state_of_a_mapping_does_not_shadow_its_methods() -> None:
    head = b"\x80\x04" + named("collections", "OrderedDict", "STACK_GLOBAL") + b")R"
    value, unsafe = unpickle(head + b"}" + text("items") + b"K\x01sb.", KNOWN, lambda pid: pid)
    assert list(value.items()) == []
    assert unsafe == []


@pytest.mark.parametrize("new", [True, False])
def test_a_file_of_torch_save(tmp_path: Path, new: bool) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder in (good, bad):
        folder.mkdir()
        torch.save({"w": torch.arange(6.0)}, folder / "b.pt")
    torch.save({"w": torch.ones(2)}, good / "a.pt")
    evil = {"w": torch.ones(2), "x": Evil(tmp_path / "PWNED")}
    torch.save(evil, bad / "a.pt", _use_new_zipfile_serialization=new)
    result = compare(good, bad)
    assert not (tmp_path / "PWNED").exists()
    assert result["verdict"] == "unknown"
    (warning,) = result["warnings"]
    assert warning["code"] == "file_unsafe"
    assert "system" in warning["text"]
    assert str(bad / "a.pt") in warning["text"]
    assert result["read"]["equal"] == 2


def test_a_zip_inside_of_a_pickle_is_not_opened(tmp_path: Path) -> None:
    """The bytes of an extra state may be a pickle; they are compared, never read."""
    inner = io.BytesIO(pickle.dumps(Evil(tmp_path / "PWNED")))
    torch.save({"w": torch.ones(2), "a._extra_state": inner}, tmp_path / "m.pt")
    result = compare(tmp_path / "m.pt", tmp_path / "m.pt")
    assert result["verdict"] == "same"
    assert not (tmp_path / "PWNED").exists()


def test_shared_and_circular_states_end(tmp_path: Path) -> None:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    laughs: Any = ["ha"]
    for _ in range(40):
        laughs = [laughs, laughs]
    for n, state in enumerate((circle, {"w": laughs})):
        path = tmp_path / f"{n}.pt"
        path.write_bytes(pickle.dumps(state))
        result = compare(path, path)
        assert result["verdict"] == "unknown"
        assert (
            "nested without end" in result["warnings"][0]["text"]
            or "more than" in (result["warnings"][0]["text"])
        )


def test_a_compressed_entry_is_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(64)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as source:
        content = {info.filename: source.read(info) for info in source.infolist()}
    with zipfile.ZipFile(tmp_path / "b.pt", "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in content.items():
            target.writestr(name, data)
    with pytest.raises(ReadError, match="compressed"):
        read_torch_file(str(tmp_path / "b.pt"))


@pytest.mark.parametrize("shape", [(1000, 1000), (-1,), (2**62,), (3, 3, 3)])
def test_a_tensor_cannot_reach_beyond_its_storage(tmp_path: Path, shape: tuple[int, ...]) -> None:
    torch.save({"w": torch.ones(4)}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as source:
        content = {info.filename: source.read(info) for info in source.infolist()}
    name = next(name for name in content if name.endswith("data.pkl"))
    size = pickle.dumps(shape, 2)[2:-1]
    strides = pickle.dumps((1,) * len(shape), 2)[2:-1]
    # K\x04\x85q?K\x01\x85 : size (4,), stride (1,)
    at = content[name].index(b"K\x04\x85")
    end = content[name].index(b"\x89", at)
    content[name] = content[name][:at] + size + strides + content[name][end:]
    with zipfile.ZipFile(tmp_path / "b.pt", "w") as target:
        for key, data in content.items():
            target.writestr(key, data)
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt")
    assert result["verdict"] == "unknown"
    assert "b.pt" in result["warnings"][0]["text"]
