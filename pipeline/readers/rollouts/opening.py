"""Opens pickles and torch files to inert values, and refuses what would unfold without end."""

from __future__ import annotations

import math
from typing import Any

from ..checkpoint.saved_tensor import SavedTensor
from ..checkpoint.torch_file import read_torch_bytes, read_torch_file
from ..errors import ReadError
from ..inert import Array, Record

DEEPEST = 100
PER_BYTE, AT_LEAST = 64, 1 << 24
"""How many elements a file may unfold to: one takes a byte, and samples of a group share some."""


def open_saved(file: str, size: int) -> Any:
    """Return what a file holds: containers, numbers, texts, `SavedTensor`, `Array`, `Record`.

    Raises:
        ReadError: it is damaged, no pickle, or built to exhaust memory.
    """
    return _bounded(read_torch_file(file).value, size)


def open_packed(content: bytes) -> Any:
    """Return what a file inside of another holds."""
    return _bounded(read_torch_bytes(content).value, len(content))


def _bounded(content: Any, size: int) -> Any:
    if _unfolded(content, {}) > max(AT_LEAST, PER_BYTE * size):
        raise ReadError("its pickle is built to exhaust memory: it says the same again and again")
    return content


def _unfolded(node: Any, known: dict[int, int], depth: int = 0) -> int:
    """Return how many elements a value has when what stands in it twice counts twice."""
    if isinstance(node, SavedTensor):
        return abs(math.prod(node.shape))
    if id(node) not in known:
        if depth > DEEPEST:
            raise ReadError("its pickle is built to exhaust memory: it is nested without end")
        parts = _parts(node)
        flat = not any(issubclass(kind, _NESTED) for kind in set(map(type, parts)))
        inner = () if flat else (part for part in parts if isinstance(part, _NESTED))
        known[id(node)] = len(parts) + sum(_unfolded(part, known, depth + 1) for part in inner)
    return known[id(node)]


_NESTED = (list, tuple, dict, Record, Array, SavedTensor)


def _parts(node: Any) -> Any:
    if isinstance(node, dict):
        return node.values()
    if isinstance(node, Record):
        return (node.args, node.state, node.items)
    if isinstance(node, Array):
        return node.data if isinstance(node.data, (list, bytes)) else ()
    return node if isinstance(node, (list, tuple)) else ()
