"""What a reader makes of a checkpoint, whatever its family."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..dtypes import is_known
from ..errors import ReadError
from ..inert import Array, Record
from .files import InFile
from .saved_tensor import SavedTensor
from .tensors import Tensor, whole
from .torch_file import plain_name

MOST_NODES, MOST_DEPTH = 5_000_000, 100
"""Beyond these a state is built to exhaust memory: nested without end, or shared without end."""

MASTER = "fp32_param"
"""The optimizer's slot of the weight in full precision."""


@dataclass(frozen=True)
class Problem:
    """Something that could not be read, or is not safe to read.

    Args:
        code: `file_unsafe`, `file_unreadable`, `file_missing`, `not_covered`.
        text: what, where, what to do.
        tensors: that are known to be missing by it.
    """

    code: str
    text: str
    tensors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replica:
    """A further copy of a tensor inside of the same checkpoint."""

    name: str
    where: str
    tensor: Tensor
    copy: Tensor


@dataclass
class Contents:
    """A checkpoint: what it holds, and nothing read of it yet.

    Args:
        path: as the user gave it.
        format: in a word: `safetensors`, `megatron`, `deepspeed`.
        family: the table of layout rules of its names.
        facts: of how it was written, for the result: tp, pp, iteration.
        config: of the model: heads, groups, head_dim, gated, vocab_size, experts.
        tensors: name -> weight or buffer.
        unmerged: name -> its part on each tensor-parallel rank, where no rule says how they join.
        optimizer: (parameter, slot) -> state.
        opaque: name -> what stands for its bytes.
        values: name -> number, text, flag.
        replicas: further copies of tensors.
        problems: what could not be read.
    """

    path: str
    format: str
    family: str = "huggingface"
    facts: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    unmerged: dict[str, list[Tensor]] = field(default_factory=dict)
    optimizer: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    opaque: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    replicas: list[Replica] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def damaged(self) -> bool:
        """Tell whether a file could not be read, so that what is missing may have been in it."""
        return any(p.code in ("file_unreadable", "file_missing") for p in self.problems)

    def add_leaf(self, name: str, value: Any) -> None:
        """Add one entry of a state."""
        if is_opaque(name):
            self.opaque[name] = digest(value)
        elif isinstance(value, Tensor):
            self.tensors[name] = value
        elif isinstance(value, Record):
            text = plain_name(value)
            self.opaque[name] = f"{text} {digest(value)}"
        elif isinstance(value, type):
            self.values[name] = plain_name(value)
        elif isinstance(value, (int, float, str, bool, complex)) or value is None:
            self.values[name] = value
        else:
            self.opaque[name] = digest(value)

    def unsafe(self, path: str, names: list[str]) -> None:
        """Note that a file names what no checkpoint needs; nothing of it was run."""
        if names:
            text = (
                f"{path} is not safe: its pickle names {', '.join(names)}, which no checkpoint "
                "needs; nothing of it was run, but do not load this file with torch.load"
            )
            self.problems.append(Problem("file_unsafe", text))

    def unreadable(self, error: ReadError, tensors: tuple[str, ...] = ()) -> None:
        """Note that a file could not be read."""
        self.problems.append(Problem("file_unreadable", str(error), tensors))


def is_opaque(name: str) -> bool:
    """Tell whether an entry is compared by its bytes alone: state of layers, random generators."""
    return "_extra_state" in name or "rng_state" in name or "random_state" in name


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) of a nested state; tensors as `Tensor`.

    Raises:
        ReadError: it is nested too deeply, or holds too much.
    """
    pending = [(name, value, 0)]
    for _ in range(MOST_NODES):
        if not pending:
            return
        path, node, depth = pending.pop()
        if depth > MOST_DEPTH:
            raise ReadError(f"its state is nested without end at {path[:60]}")
        parts = _parts(node)
        if parts is None:
            yield path, leaf(node)
        else:
            named = [(f"{path}.{key}" if path else str(key), part) for key, part in parts]
            pending += [(key, part, depth + 1) for key, part in reversed(named)]
    raise ReadError(f"its state has more than {MOST_NODES:,} entries")


def leaf(value: Any) -> Any:
    """Return a value of a state; what holds numbers as a `Tensor`."""
    if isinstance(value, SavedTensor):
        return value.tensor() if is_known(value.dtype) else value
    if isinstance(value, Array) and isinstance(value.value, np.ndarray):
        numbers = value.value
        if numbers.dtype.kind in "biufc":
            native = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("="))
            kind = str(native.dtype)
            return whole(InFile(native.tobytes(), 0, kind, native.shape), kind)
    return value


def _parts(node: Any) -> list[tuple[Any, Any]] | None:
    """Return the entries of a container; None for anything else."""
    if isinstance(node, dict):
        return list(node.items())
    if isinstance(node, (list, tuple)):
        return list(enumerate(node))
    if isinstance(node, Record) and node.path in ("argparse.Namespace", "types.SimpleNamespace"):
        return list(node.fields.items())
    return None


def digest(value: Any) -> str:
    """Return what is equal for equal content, of something that is not looked into."""
    if value is None:
        return "none"
    if isinstance(value, Tensor) and not value.numel:
        return "empty"
    text = hashlib.sha256(_bytes(value)).hexdigest()
    return f"sha256:{text[:32]}"


def _bytes(value: Any) -> bytes:
    from .files import Files

    if isinstance(value, Tensor):
        from .reading import read

        with Files() as files:
            return read(value, files).tobytes()
    if isinstance(value, Record):
        parts = value.state if isinstance(value.state, tuple) else (value.state,)
        content = [p for p in parts if isinstance(p, (bytes, bytearray))]
        if content:
            return b"".join(content)
        return f"{value.path}{_text(value.args)}{_text(value.state)}{_text(value.items)}".encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return _text(value).encode()


def _unread(value: SavedTensor | Array) -> Any:
    """Return what tells of a tensor of an unknown dtype, or of an array of objects."""
    return value.value if isinstance(value, Array) else [value.dtype, value.shape]


def _text(value: Any, depth: int = 0) -> str:
    """Return a text of inert values, without addresses."""
    if depth > 12:
        return "..."
    if isinstance(value, (SavedTensor, Array)):
        opened = leaf(value)
        value = digest(opened) if isinstance(opened, Tensor) else _unread(value)
    if isinstance(value, dict):
        return (
            f"{{{','.join(f'{k}:{_text(v, depth + 1)}' for k, v in list(value.items())[:1000])}}}"
        )
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_text(v, depth + 1) for v in value[:1000])}]"
    if isinstance(value, (set, frozenset)):
        return f"set{_text(sorted(map(str, value)), depth + 1)}"
    if isinstance(value, Record):
        return f"{value.path}({_text(value.args, depth + 1)}{_text(value.state, depth + 1)})"
    return plain_name(value) if isinstance(value, type) else str(value)
