"""Reads torch.distributed.checkpoint folders: `.metadata` and items in `*.distcp`; needs no torch.

`.metadata` is one pickle that says of each tensor its size and chunks, and of each chunk in which
file it lies; an item of a file is a complete file of torch.save
(torch/distributed/checkpoint/filesystem.py, metadata.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..dtypes import SHORT, Array
from ..errors import ReadError
from ..inert import unpickle
from .contents import Contents, Problem, is_opaque, leaves
from .files import Files
from .saved_tensor import SavedTensor
from .tensors import Shape, Tensor, placed, whole
from .torch_file import KNOWN, plain_name, read_torch_file

METADATA = ".metadata"
STATE = re.compile(r"(?:optimizer|optim)(?:_\d+)?\.state\.(.+)\.(\w+)")
"""Optimizer state by parameter, nested or flattened."""
SLOT_FIRST = re.compile(
    r"(?:chained_\d+\.)?optimizer\.state\.(exp_avg|exp_avg_sq|fp32_param|\w+)\.(.+)"
)
"""Optimizer state as Megatron names it."""
SETTINGS = re.compile(r"(?:optimizer|optim)(?:_\d+)?\.(?:param_groups|state)\b.*")


@dataclass(frozen=True)
class Item:
    """A tensor that is an item of a .distcp file.

    Args:
        path, offset, length: where the item lies.
        shape: of the tensor.
    """

    path: str
    offset: int
    length: int
    shape: Shape

    def open(self, files: Files) -> Array:
        """Return it; only its place is read now."""
        value = read_torch_file(self.path, self.offset, self.length).value
        if not isinstance(value, SavedTensor) or value.shape != self.shape:
            raise ReadError(
                f"{self.path}: the item at byte {self.offset} is not the tensor of shape "
                f"{list(self.shape)} that {METADATA} names"
            )
        source: Any = value.tensor().boxes[0].source if 0 not in self.shape else None
        found: Array = source.open(files)
        return found


def read_dcp(path: Path) -> Contents:
    """Return what a folder with `.metadata` holds.

    Raises:
        ReadError: its `.metadata` cannot be read.
    """
    contents = Contents(str(path), "torch distributed", facts={"files": 0})
    meta = _metadata(contents, path / METADATA)
    stored = meta.get("storage_data") or {}
    places: dict[str, dict[Shape | None, Any]] = {}
    for index, info in stored.items():
        key = index.fields
        offset = key.get("offset")
        at = None if offset is None else tuple(offset)
        places.setdefault(key["fqn"], {})[at] = info.fields
    files = sorted({info["relative_path"] for found in places.values() for info in found.values()})
    contents.facts["files"] = len(files)
    missing = {name for name in files if not (path / name).is_file()}
    entries = meta.get("state_dict_metadata") or {}
    for name in sorted(missing):
        lost = tuple(
            k for k, v in places.items() if any(i["relative_path"] == name for i in v.values())
        )
        text = f"{path / name} is missing; {METADATA} names it for {len(lost)} entries"
        contents.problems.append(Problem("file_missing", text, lost))
    for name, entry in entries.items():
        found = places.get(name, {})
        if any(info["relative_path"] in missing for info in found.values()):
            continue
        try:
            _add(contents, path, name, entry, found)
        except ReadError as error:
            contents.unreadable(error, (name,))
    return contents


def _metadata(contents: Contents, file: Path) -> dict[str, Any]:
    try:
        value, unsafe = unpickle(file.read_bytes(), KNOWN, _no_storage)
    except OSError as error:
        raise ReadError(f"{file} cannot be read: {error.strerror}") from None
    except ReadError as error:
        raise ReadError(f"{file}: {error}") from None
    contents.unsafe(str(file), unsafe)
    fields: dict[str, Any] = getattr(value, "fields", {})
    if "state_dict_metadata" not in fields:
        raise ReadError(f"{file} is no metadata of torch.distributed.checkpoint")
    return fields


def _no_storage(pid: Any) -> Any:
    raise ReadError("names a storage")


def _add(
    contents: Contents, path: Path, name: str, entry: Any, found: dict[Shape | None, Any]
) -> None:
    if not entry.path.endswith("TensorStorageMetadata"):
        _add_object(contents, path, name, found.values())
        return
    tensor = _tensor(path, name, entry.fields, found)
    state = STATE.fullmatch(name) or None
    first = SLOT_FIRST.fullmatch(name)
    if state and not (first and "." not in state[1]):
        contents.optimizer[state[1], state[2]] = tensor
    elif first:
        contents.optimizer[first[2], first[1]] = tensor
    else:
        contents.add_leaf(name, tensor)


def _tensor(path: Path, name: str, fields: dict[str, Any], found: dict[Any, Any]) -> Tensor:
    properties = fields["properties"]
    kind = (properties.state or (None,))[0] if isinstance(properties.state, tuple) else None
    dtype = plain_name(kind or properties.fields.get("dtype"))
    dtype = SHORT.get(dtype, dtype)
    parts = []
    for chunk in fields["chunks"]:
        at, shape = tuple(chunk.fields["offsets"]), tuple(chunk.fields["sizes"])
        info = found.get(at)
        if info is None:
            raise ReadError(f"{path / METADATA} says of no file where {name} lies at {at}")
        if info.get("transform_descriptors"):
            raise ReadError(
                f"{path / info['relative_path']} is compressed; save it without extensions"
            )
        file = str(path / info["relative_path"])
        item = Item(file, info["offset"], info["length"], shape)
        parts.append((at, whole(item, dtype)))
    tensor = placed(tuple(fields["size"]), parts)
    if not tensor.whole:
        raise ReadError(f"{path / METADATA}: chunks of {name} are missing or overlap")
    return tensor


def _add_object(contents: Contents, path: Path, name: str, found: Iterable[Any]) -> None:
    """Add what is no tensor; settings of the optimizer are no values of the model."""
    if SETTINGS.fullmatch(name):
        return
    for info in found:
        file = str(path / info["relative_path"])
        saved = read_torch_file(file, info["offset"], info["length"])
        contents.unsafe(file, saved.unsafe)
        opaque = is_opaque(name)
        for key, value in [(name, saved.value)] if opaque else leaves(saved.value, name):
            contents.add_leaf(key, value)
