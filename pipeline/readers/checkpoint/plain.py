"""Reads files of torch.save that no framework's folder explains, and plain pickles and .npy."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ReadError
from .contents import MASTER, Contents, leaf, leaves
from .files import InFile
from .tensors import Tensor, whole
from .torch_file import read_torch_file

STATES = ("model", "state_dict", "module", "model_state_dict", "net")
"""Under one of these a trainer keeps the weights."""
OPTIMIZERS = ("optimizer", "optim", "optimizer_state_dict", "optimizer_states", "optimizers")
BESIDE = ("lr_scheduler", "scheduler", "lr_schedulers", "opt_param_scheduler", "param_names")
"""Not of the model."""


def add_file(contents: Contents, path: Path, prefix: str = "") -> None:
    """Add what a file of torch.save holds; note it when it cannot be read or is not safe."""
    try:
        saved = read_torch_file(str(path))
        contents.unsafe(str(path), saved.unsafe)
        _add(contents, saved.value, path, prefix)
    except ReadError as error:
        text = str(error) if str(path) in str(error) else f"{path}: {error}"
        contents.unreadable(ReadError(text))


def _add(contents: Contents, value: Any, path: Path, prefix: str) -> None:
    if not isinstance(value, dict):
        # one tensor, as a dump of tensors has it, or nothing that is known
        for name, part in leaves(value, prefix.removesuffix("/") or path.stem):
            contents.add_leaf(name, part)
        return
    if set(value) == {"state", "param_groups"}:
        _add_optimizer(contents, value, [], prefix)
        return
    only = [key for key in STATES if isinstance(value.get(key), dict)]
    for key, part in value.items():
        if key in OPTIMIZERS:
            for one in part if isinstance(part, list) else [part]:
                _add_optimizer(contents, one, list(_names(value)), prefix)
        elif key not in BESIDE:
            outer = "" if only == [key] else str(key)
            for name, item in leaves(part, outer):
                contents.add_leaf(prefix + name, item)


def _names(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parameters in the order of the optimizer's numbers, where it is on record."""
    for name in state.get("param_names") or ():
        yield str(name)


def _add_optimizer(contents: Contents, state: Any, names: list[str], prefix: str) -> None:
    """Add the state of a torch optimizer; a mixed-precision one has it inside."""
    if not isinstance(state, dict):
        return
    inner = state.get("optimizer")
    if isinstance(inner, dict):
        _add_optimizer(contents, inner, names, prefix)
    groups = state.get("param_groups")
    for group in groups if isinstance(groups, list) else ():
        named = group.get("param_names") if isinstance(group, dict) else None
        names = names + [str(name) for name in named or ()]
    for number, slots in (state.get("state") or {}).items():
        known = isinstance(number, int) and number < len(names)
        name = names[number] if known else f"{prefix}{number}"
        for slot, value in slots.items() if isinstance(slots, dict) else ():
            _add_slot(contents, name, str(slot), value)
    masters = state.get("fp32_from_fp16_params") or ()
    flat = [master for group in masters for master in group]
    for number, master in enumerate(flat):
        name = names[number] if number < len(names) else f"{prefix}{number}"
        _add_slot(contents, name, MASTER, master)


def _add_slot(contents: Contents, name: str, slot: str, value: Any) -> None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # a step is a number or a tensor of float32, by the version of torch
        kind, code = ("float32", "<f") if float(np.float32(value)) == value else ("float64", "<d")
        number = InFile(struct.pack(code, value), 0, kind, ())
        contents.optimizer[name, slot] = whole(number, kind)
    else:
        tensor = leaf(value)
        if isinstance(tensor, Tensor):
            contents.optimizer[name, slot] = tensor


def add_npy(contents: Contents, path: Path, prefix: str = "") -> None:
    """Add an array of a dump of tensors (.npy); Python objects in it are refused.

    https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
        dtype, size = str(found.dtype.newbyteorder("=")), found.nbytes
        strides = tuple(n // found.itemsize for n in found.strides)
        order = None if found.flags.c_contiguous else strides
        big = found.dtype.byteorder == ">"
        offset = path.stat().st_size - size
    except (ValueError, EOFError, OSError) as error:
        contents.unreadable(ReadError(f"{path} is no array of numbers ({error})"))
        return
    array = InFile(str(path), offset, dtype, found.shape, order, big)
    contents.add_leaf(prefix.removesuffix("/") or path.stem, whole(array, dtype))
