"""verl: a pickled `DataProto`, in the torch form and in the NumPy form (verl 0.9.1 protocol.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .batch import dict_values
from .dtypes import decode
from .inert import Inert, Tensor, open_inert_bytes
from .part import Value


def recognises(content: Any) -> bool:
    """Tell whether this is a DataProto."""
    return isinstance(content, Inert) and content.name.endswith(".DataProto")


def values(content: Inert) -> list[Value]:
    """Return the tensors of the batch, and what stands beside them."""
    state: Any = content.state
    packed, beside, _ = state if isinstance(state, tuple) else (None, {}, {})
    batch: dict[str, Any] = {}
    _tensors(open_inert_bytes(packed) if isinstance(packed, bytes) else packed, batch)
    batch |= {name: column for name, column in beside.items() if name not in batch}
    return dict_values(batch)


def _tensors(content: Any, found: dict[str, Any]) -> None:
    """Collect what has a name and holds a tensor, wherever it stands."""
    if isinstance(content, Inert) and content.name.endswith(
        "_rebuild_tensordict_files_consolidated"
    ):
        found |= _consolidated(*content.args[:2])
    elif isinstance(content, Inert):
        for part in (content.state, content.args, content.items):
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


def _consolidated(described: dict[str, Any], storage: Tensor) -> dict[str, Tensor]:
    """Return the tensors of a TensorDict that lies in one piece, by what describes each."""
    found = {}
    for name, (dtype, shape, start, stop, _) in described["leaves"].items():
        kind = dtype.removeprefix("torch.")
        found[name] = Tensor(kind, decode(storage.array[start:stop].tobytes(), kind).reshape(shape))
    return found


def _tensor(content: Any) -> Tensor | None:
    """Return a tensor; in the NumPy form it is (dtype, shape, bytes as uint8)."""
    if isinstance(content, Tensor):
        return content
    if isinstance(content, tuple) and len(content) == 3 and isinstance(content[2], np.ndarray):
        dtype, shape, raw = content
        dtype = str(dtype).removeprefix("torch.")
        return Tensor(dtype, decode(raw.tobytes(), dtype).reshape(tuple(shape)))
    return None
