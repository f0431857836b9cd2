"""No pickle runs anything: every opcode that can name, call or change something is tried."""

from __future__ import annotations

import builtins
import copyreg
import io
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.readers.checkpoint.torch_file import KNOWN, read_torch_file
from pipeline.readers.errors import ReadError
from pipeline.readers.inert import STANDARD, Plain, Record, unpickle
from tests.checkpoints import compare


def text(word: str) -> bytes:
    return b"\x8c" + bytes([len(word)]) + word.encode()


def long_text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


CALLABLES = {
    "open": ("builtins", "open", ("{target}", "w")),
    "io.open": ("io", "open", ("{target}", "w")),
    "system": ("os", "system", ("touch {target}",)),
    "posix": ("posix", "system", ("touch {target}",)),
    "eval": ("builtins", "eval", ("open({target!r}, 'w')",)),
    "exec": ("builtins", "exec", ("open({target!r}, 'w')",)),
    "popen": ("subprocess", "Popen", ("touch {target}",)),
    "import": ("builtins", "__import__", ("antigravity",)),
    "getattr": ("builtins", "getattr", ("os", "system")),
    "dotted": ("os", "path.os.system", ("touch {target}",)),
    "torch": ("torch.serialization", "os.system", ("touch {target}",)),
    "codecs": ("codecs", "open", ("{target}", "w")),
    "shutil": ("shutil", "rmtree", ("{target}",)),
    "runpy": ("runpy", "run_path", ("{target}",)),
    "partial": ("functools", "partial", ("x",)),
    "methodcaller": ("operator", "methodcaller", ("system", "x")),
    "load": ("torch", "load", ("{target}",)),
    "from_bytes": ("torch.storage", "_load_from_bytes", ("x",)),
    "numpy": ("numpy.testing._private.utils", "runstring", ("x", "y")),
    "python2": ("__builtin__", "eval", ("1",)),
    "nt": ("nt", "system", ("x",)),
    "ctypes": ("ctypes", "CDLL", ("x",)),
    "pickle": ("pickle", "loads", ("x",)),
}


def named(module: str, name: str, how: str) -> bytes:
    """Return the opcodes that push a global."""
    if how == "GLOBAL":
        return f"c{module}\n{name}\n".encode()
    if how == "STACK_GLOBAL":
        return text(module) + text(name) + b"\x93"
    return long_text(module) + b"r\x05\x00\x00\x00" + long_text(name) + b"\x93"


def arguments(args: tuple[str, ...]) -> bytes:
    return b"(" + b"".join(map(long_text, args)) + b"t"


def called(module: str, name: str, args: tuple[str, ...], how: str) -> bytes:
    """Return a pickle that calls a global, in one of the ways there are."""
    if how == "INST":
        return b"(" + b"".join(map(long_text, args)) + f"i{module}\n{name}\n.".encode()
    if how == "OBJ":
        pushed = b"".join(map(long_text, args))
        return b"(" + named(module, name, "GLOBAL") + pushed + b"o."
    head = b"\x80\x04" + named(module, name, "STACK_GLOBAL") + arguments(args)
    if how == "NEWOBJ":
        return head + b"\x81."
    if how == "NEWOBJ_EX":
        return head + b"}\x92."
    if how == "BUILD":
        return head + b"R}" + long_text("x") + b"K\x01sb."
    if how == "dropped":
        return head + b"R0}."
    if how == "as key":
        return b"\x80\x04}" + head[2:] + b"RK\x01s."
    assert how == "REDUCE"
    return head + b"R."


WAYS = ("REDUCE", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "BUILD", "dropped", "as key")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a path that nothing may touch; what would run something is noted as well."""
    ran: list[str] = []
    for module, name in ((os, "system"), (builtins, "eval"), (builtins, "__import__")):
        real = getattr(module, name)

        def note(*args: Any, real: Any = real, name: str = name, **more: Any) -> Any:
            ran.append(f"{name}{args[:1]}")
            return real(*args, **more)

        monkeypatch.setattr(module, name, note)
    target = tmp_path / "PWNED"
    yield target
    monkeypatch.undo()
    assert not target.exists()
    assert not [call for call in ran if "system" in call or "antigravity" in call]


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


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04\x82\x01.",  # EXT1: a code that nobody registered
        b"\x80\x04\x83\x01\x00.",
        b"\x80\x04\x84\x01\x00\x00\x00.",
        b"\x80\x04}" + b"\x82\x01" + b"s.",
        b"P123\n.",  # a persistent id that is text
        b"\x80\x04K\x01Q.",
        b"\x80\x05\x97.",  # NEXT_BUFFER without buffers
        b"\x80\x09N.",  # a protocol that does not exist
        b"\x80\x04R.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",  # BINBYTES8 of 2**63 bytes
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x04\x8b\xff\xff\xff\x7f.",  # LONG4 of 2 GiB
        b"\x80\x02Nr\xff\xff\xff\xff0N",  # LONG_BINPUT of 2**32, which would reserve 64 GiB
        b"",
        b"no pickle at all",
    ],
)
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


class Evil:
    """What torch.save writes of an object with a bad __reduce__."""

    def __init__(self, target: Path) -> None:
        self.target = str(target)

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.target}",)


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
