"""Reads MindSpore's .ckpt, a protobuf, record by record; needs neither MindSpore nor protobuf.

mindspore/ccsrc/utils/checkpoint.proto: a Checkpoint is records of field 1, each a tag and a tensor
(dims, type, raw bytes). A parameter of more than 512 MiB is several records of one tag. With
`crc_check` a trailer of 17 bytes follows; an encrypted file is no protobuf at all.
"""

from __future__ import annotations

import math
import mmap
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..dtypes import dtype_of
from ..errors import ReadError
from .contents import Contents
from .files import Files, InFile
from .flat import shaped
from .reading import read
from .tensors import Tensor, joined, whole

TRAILER, TRAILER_BYTES = b"crc_num", 17
OPTIMIZER = re.compile(r"(moment[12]|moments|accum|stat|velocity|state_step|exp_avg(?:_sq)?)\.(.+)")
OPTIMIZER_VALUES = re.compile(
    r"(beta[12]_power|global_step|learning_rate|momentum|.*loss_scale.*)$"
)


def is_mindspore(path: Path) -> bool:
    """Tell whether a file begins like a MindSpore checkpoint: a record with a printable tag."""
    with open(path, "rb") as file:
        head = file.read(64)
    if head[:1] != b"\x0a":
        return False
    try:
        _, at = _varint(head, 1)
        return head[at : at + 1] == b"\x0a" and 0 < head[at + 1] < 0x80
    except ReadError:
        return False


def add_file(contents: Contents, path: Path, prefix: str = "") -> None:
    """Add the parameters of one .ckpt; note it when it cannot be read."""
    contents.family = "mindspore"
    try:
        records = _records(str(path))
    except ReadError as error:
        contents.unreadable(error)
        return
    for tag, value in records.items():
        slot = OPTIMIZER.fullmatch(tag)
        if isinstance(value, Tensor) and slot:
            contents.optimizer[prefix + slot[2], slot[1]] = value
        elif isinstance(value, Tensor) and OPTIMIZER_VALUES.fullmatch(tag):
            contents.optimizer["", prefix + tag] = value
        elif isinstance(value, Tensor) and not value.shape:  # as append_dict writes numbers
            with Files() as files:
                contents.values[prefix + tag] = read(value, files).item()
        else:
            contents.add_leaf(prefix + tag, value)


@dataclass
class _Record:
    """One parameter, or a piece of a large one: its tag, and where its bytes lie."""

    tag: str = ""
    dims: tuple[int, ...] = ()
    kind: str = ""
    pieces: list[tuple[int, int]] = field(default_factory=list)


def _records(path: str) -> dict[str, Any]:
    with Files() as files:
        mapped = files.bytes(path)
        end = len(mapped)
        if mapped[-TRAILER_BYTES:][: len(TRAILER)] == TRAILER:
            end -= TRAILER_BYTES
            _check_crc(path, mapped, end)
        found: dict[str, _Record] = {}
        at = 0
        try:
            while at < end:
                record, at = _record(mapped, at, end)
                first = found.setdefault(record.tag, record)
                if first is not record:
                    first.pieces += record.pieces
        except (ReadError, UnicodeDecodeError) as error:
            raise ReadError(
                f"{path}: record at byte {at} cannot be read ({error}); cut off, or saved with "
                "enc_key: an encrypted checkpoint must be decrypted first"
            ) from None
        return {tag: _value(path, mapped, record) for tag, record in found.items()}


def _check_crc(path: str, mapped: mmap.mmap, end: int) -> None:
    """Compare the checksum of the trailer, big-endian in its last ten bytes."""
    told, real = int.from_bytes(mapped[end + len(TRAILER) :], "big"), 0
    with memoryview(mapped) as view:
        for at in range(0, end, 2**24):
            with view[at : min(end, at + 2**24)] as piece:
                real = zlib.crc32(piece, real)
    if told != real:
        raise ReadError(f"{path}: its checksum does not fit; the file is damaged")


def _record(data: mmap.mmap, at: int, end: int) -> tuple[_Record, int]:
    """Return one record, and where the next begins."""
    if data[at] != 0x0A:
        raise ReadError("not a record")
    size, at = _varint(data, at + 1)
    stop = at + size
    if stop > end:
        raise ReadError("cut off")
    record = _Record()
    for number, start, length in _fields(data, at, stop):
        if number == 1:
            record.tag = data[start : start + length].decode()
        elif number == 2:
            _add_tensor(record, data, start, start + length)
        else:
            record.kind = "MapTensor"
    return record, stop


def _add_tensor(record: _Record, data: mmap.mmap, at: int, stop: int) -> None:
    for number, start, length in _fields(data, at, stop):
        if number == 1:
            dims = [start] if length < 0 else _packed(data, start, start + length)
            record.dims += tuple(dims)
        elif number == 2:
            record.kind = data[start : start + length].decode()
        elif number == 3:
            record.pieces.append((start, length))


def _fields(data: mmap.mmap, at: int, stop: int) -> list[tuple[int, int, int]]:
    """Return (number, start, length) of fields; (number, value, -1) of those that are a number."""
    found = []
    while at < stop:
        key, at = _varint(data, at)
        value, at = _varint(data, at)
        if key & 7 == 0:
            found.append((key >> 3, value, -1))
        elif key & 7 == 2 and at + value <= stop:
            found.append((key >> 3, at, value))
            at += value
        else:
            raise ReadError("not a field")
    return found


def _packed(data: mmap.mmap, at: int, stop: int) -> list[int]:
    numbers = []
    while at < stop:
        number, at = _varint(data, at)
        numbers.append(number)
    return numbers


def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64 and at < len(data):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ReadError("cut off")


def _value(path: str, data: mmap.mmap, record: _Record) -> Any:
    if record.kind in ("str", "MapTensor", "Int4", ""):
        content = b"".join(data[at : at + size] for at, size in record.pieces)
        # text has four bytes a character
        return content.decode("utf-32-le", "replace") if record.kind == "str" else content
    dtype = record.kind.lower()
    itemsize = dtype_of(dtype).itemsize
    parts = [whole(InFile(path, at, dtype, (n // itemsize,)), dtype) for at, n in record.pieces]
    flat = joined(parts) if parts else Tensor((0,), dtype, ())
    shape = () if record.dims == (0,) and flat.numel == 1 else record.dims
    if flat.numel != math.prod(shape):
        text = f"{record.tag} holds {flat.numel} elements, not those of {list(shape)}"
        raise ReadError(f"{path}: {text}; it is damaged")
    return shaped(flat, shape)
