"""verl: a pickled `DataProto`, in the torch form and in the NumPy form (verl 0.9.1 protocol.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checkpoint.saved_tensor import SavedTensor, saved_array
from ..inert import Array, Record
from .batch import dict_values, numbers
from .opening import open_packed
from .part import Value


def recognises(content: Any) -> bool:
    """Tell whether this is a DataProto."""
    return isinstance(content, Record) and content.path.endswith(".DataProto")


def values(content: Record) -> list[Value]:
    """Return the tensors of the batch, and what stands beside them."""
    state: Any = content.state
    packed, beside, _ = state if isinstance(state, tuple) else (None, {}, {})
    batch: dict[str, Any] = {}
    _tensors(open_packed(packed) if isinstance(packed, bytes) else packed, batch)
    batch |= {name: column for name, column in beside.items() if name not in batch}
    return dict_values(batch)


def _tensors(content: Any, found: dict[str, Any]) -> None:
    """Collect what has a name and holds a tensor, wherever it stands."""
    if isinstance(content, Record) and content.path.endswith(
        "_rebuild_tensordict_files_consolidated"
    ):
        found |= _consolidated(*content.args[:2])
    elif isinstance(content, Record):
        for part in (content.state, content.args, _items(content)):
            _tensors(part, found)
    elif isinstance(content, Mapping):
        for name, one in content.items():
            tensor = _tensor(one)
            if tensor is None:
                _tensors(one, found)
            elif isinstance(name, str):
                found.setdefault(name, tensor)
    elif isinstance(content, (list, tuple)):
        for one in content:
            _tensors(one, found)


def _items(content: Record) -> dict[Any, Any]:
    """Return what was set in an object by name."""
    return dict(one for one in content.items if isinstance(one, tuple) and len(one) == 2)


def _consolidated(described: dict[str, Any], storage: SavedTensor) -> dict[str, SavedTensor]:
    """Return the tensors of a TensorDict that lies in one piece, by what describes each."""
    content, found = storage.array(), {}
    for name, (dtype, shape, start, stop, _) in described["leaves"].items():
        kind = dtype.removeprefix("torch.")
        found[name] = saved_array(content[start:stop].tobytes(), kind, tuple(shape))
    return found


def _tensor(content: Any) -> SavedTensor | None:
    """Return a tensor; in the NumPy form it is (dtype, shape, bytes as uint8)."""
    if isinstance(content, SavedTensor):
        return content
    if isinstance(content, tuple) and len(content) == 3 and isinstance(content[2], Array):
        dtype, shape, raw = content
        kind = str(dtype).removeprefix("torch.")
        return saved_array(numbers(raw).tobytes(), kind, tuple(shape))
    return None
