"""Reads files of torch.save, old and new, and plain pickles; needs no torch.

The new form is a zip of stored entries, `ROOT/data.pkl` and `ROOT/data/KEY` for each storage
(torch/csrc/jit/serialization); the old one is five pickles with the storages behind them
(torch/serialization.py, `_legacy_load`).
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..dtypes import SHORT, dtype_of
from ..errors import ReadError
from ..inert import Known, Record, unpickle
from .files import Files
from .saved_tensor import SavedTensor, Storage

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
PICKLE = b"\x80"
"""The first byte of a pickle, but for the text form that no version of torch wrote."""
GIT_LFS = b"version https://git-lfs"

KnownTensors = Mapping[str, Any]


@dataclass(frozen=True)
class Saved:
    """What a file holds.

    Args:
        value: containers, numbers, text, `SavedTensor`, `Record`.
        unsafe: names in it that no checkpoint needs.
    """

    value: Any
    unsafe: list[str] = field(default_factory=list)


def read_torch_file(path: str, start: int = 0, length: int | None = None) -> Saved:
    """Return what a file of torch.save, or a part of one that is such a file, holds.

    Raises:
        ReadError: it is damaged, or something else.
    """
    with Files() as files:
        mapped = files.bytes(path)
        length = len(mapped) - start if length is None else length
        if length < 0 or start + length > len(mapped):
            raise ReadError(f"{path} is cut off: {start + length} bytes are expected")
        with memoryview(mapped)[start : start + length] as content:
            try:
                return _read(path, start, content)
            except ReadError as error:
                raise ReadError(f"{path}: {error}") from None


def read_torch_bytes(content: bytes) -> Saved:
    """Return what a file of torch.save inside of another holds.

    Raises:
        ReadError: it is damaged, or something else.
    """
    return _read(content, 0, memoryview(content))


def _read(path: str | bytes, start: int, content: memoryview) -> Saved:
    head = bytes(content[: len(GIT_LFS)])
    if head[:4] == b"PK\x03\x04":
        return _read_zip(path, start, content)
    if head == GIT_LFS:
        raise ReadError("is a pointer of git-lfs, not the file; fetch it with: git lfs pull")
    try:
        return _read_legacy(path, start, content)
    except ReadError:
        if head[:1] == PICKLE:
            raise
        raise ReadError(
            f"is no checkpoint: it begins with {head[:12]!r}, as no file of torch.save, "
            "safetensors, MindSpore or NumPy does"
        ) from None


def _read_zip(path: str | bytes, start: int, content: memoryview) -> Saved:
    try:
        archive = zipfile.ZipFile(io.BufferedReader(_View(content)))
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise ReadError(f"is cut off or damaged ({error})") from None
    with archive:
        entries = {info.filename: info for info in archive.infolist()}
        root = next((name[:-8] for name in entries if name.endswith("data.pkl")), None)
        if root is None:
            raise ReadError("is a zip, but none of torch.save: it has no data.pkl")
        big = _text(content, entries.get(root + "byteorder")) == b"big"

        def storage(pid: Any) -> Storage:
            found = _storage(pid)
            info = entries.get(f"{root}data/{pid[2]}")
            if info is not None:
                offset, size = _data(content, info)
                found.place = (path, start + offset, size, big)
            return found

        value, unsafe = unpickle(bytes(_text(content, entries[root + "data.pkl"])), KNOWN, storage)
    return Saved(value, unsafe)


def _text(content: memoryview, info: zipfile.ZipInfo | None) -> memoryview | bytes:
    if info is None:
        return b""
    offset, size = _data(content, info)
    return content[offset : offset + size]


def _data(content: memoryview, info: zipfile.ZipInfo) -> tuple[int, int]:
    """Return where the bytes of a stored entry lie, and how many."""
    head = content[info.header_offset : info.header_offset + 30]
    if len(head) < 30 or info.compress_type != zipfile.ZIP_STORED:
        raise ReadError(f"entry {info.filename} is compressed or cut off")
    name, extra = struct.unpack("<HH", head[26:30])
    offset = info.header_offset + 30 + name + extra
    if offset + info.file_size > len(content):
        raise ReadError(f"entry {info.filename} is cut off")
    return offset, info.file_size


def _read_legacy(path: str | bytes, start: int, content: memoryview) -> Saved:
    """Return what the old form, or one plain pickle, holds."""
    file = io.BufferedReader(_View(content))
    storages: dict[str, Storage] = {}

    def storage(pid: Any) -> Any:
        if isinstance(pid, tuple) and pid[:1] == ("module",):
            return pid[1]  # the class of a module, with its source
        return storages.setdefault(str(pid[2]), _storage(pid))

    def following() -> tuple[Any, list[str]]:
        return unpickle(file, KNOWN, storage)

    value, unsafe = following()
    if value != LEGACY_MAGIC:
        return Saved(value, unsafe)
    following()
    info, _ = following()
    value, unsafe = following()
    keys, _ = following()
    big = isinstance(info, dict) and info.get("little_endian") is False
    _place(path, start, content, file.tell(), [storages.get(str(k)) for k in keys or ()], big)
    return Saved(value, unsafe)


def _place(
    path: str | bytes, start: int, data: memoryview, at: int, found: list[Storage | None], big: bool
) -> None:
    """Tell storages where they lie: one after the other, each behind its number of elements."""
    for storage in found:
        if storage is None or at + 8 > len(data):
            raise ReadError("is cut off: storages are missing")
        (count,) = struct.unpack_from("<q", data, at)
        size = count * (dtype_of(storage.dtype).itemsize if storage.dtype else 1)
        if count < 0 or at + 8 + size > len(data):
            raise ReadError("is cut off in the middle of a storage")
        storage.place = (path, start + at + 8, size, big)
        at += 8 + size


def _storage(pid: Any) -> Storage:
    """Return the storage of a persistent id: ('storage', class, key, device, elements)."""
    if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
        raise ReadError("names an object outside of the file that is no storage")
    name = getattr(pid[1], "path", "").rpartition(".")[2]
    if not name.endswith("Storage"):
        raise ReadError(f"names a storage of unknown class {name}")
    kind = name.removesuffix("Storage")
    dtype = "" if kind == "Untyped" else _short(kind.lower())
    return Storage(dtype, pid[4] if isinstance(pid[4], int) else 0)


def _short(name: str) -> str:
    name = name.rpartition(".")[2]
    return SHORT.get(name, name)


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> SavedTensor:
    return _saved(storage, offset, shape, strides, storage.dtype or "uint8")


def _typed_tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, grad: Any, hooks: Any, dtype: Any, *_: Any
) -> SavedTensor:
    return _saved(storage, offset, shape, strides, _short(getattr(dtype, "path", "")))


def _saved(storage: Any, offset: Any, shape: Any, strides: Any, dtype: str) -> SavedTensor:
    if not isinstance(storage, Storage):
        raise ReadError("a tensor has no storage")
    return SavedTensor(storage, offset, tuple(shape), tuple(strides), dtype)


def _from_type(function: Any, kind: Any, args: Any, state: Any = None) -> Any:
    """Return a tensor of a subclass, or of a tensor with attributes, as the tensor it is."""
    return function(*args) if isinstance(function, Known) else Record(function, kind, args, state)


class _View(io.RawIOBase):
    """A memoryview as a file, without a copy."""

    def __init__(self, content: memoryview) -> None:
        self._content, self._at = content, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, len(self._content))[whence]
        if base + offset < 0:
            raise OSError("seek before the start")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as target:
            piece = self._content[self._at : self._at + len(target)]
            target[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


KNOWN: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": Known(_tensor),
    "torch._utils._rebuild_tensor_v2": Known(_tensor),
    "torch._utils._rebuild_tensor_v3": Known(_typed_tensor),
    "torch._utils._rebuild_parameter": Known(lambda tensor, *_: tensor),
    "torch._utils._rebuild_parameter_with_state": Known(lambda tensor, *_: tensor),
    "torch._tensor._rebuild_from_type_v2": Known(_from_type),
    "torch.Size": Known(lambda sizes=(): tuple(sizes)),
}


def plain_name(value: Any) -> str:
    """Return the short text of a dtype, a device or an enum that was pickled by name."""
    return re.sub(r"^torch\.", "", getattr(value, "path", ""))
