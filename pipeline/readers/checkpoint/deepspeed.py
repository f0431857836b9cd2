"""Reads DeepSpeed checkpoints, ZeRO stages 0 to 3; needs neither DeepSpeed nor torch.

Stages 1 and 2 lay the weights of a group one behind the other and cut the whole into equal parts,
one a rank; stage 3 cuts each weight alone into equal parts, padded in the last rank
(deepspeed/utils/zero_to_fp32.py).
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from ..errors import ReadError
from .contents import MASTER, Contents, Problem, leaf, leaves
from .flat import shaped
from .tensors import Shape, Tensor, cut, joined
from .torch_file import read_torch_file

MODEL = re.compile(r"(?:zero_pp_rank_(\d+)_)?mp_rank_(\d+)_model_states\.pt")
OPTIMIZER = re.compile(r"(?:\w+?_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt")


def read_deepspeed(path: Path, folder: Path) -> Contents:
    """Return what the folder of one tag holds."""
    contents = Contents(str(path), "deepspeed", facts={"tag": folder.name})
    models = _load(contents, folder, MODEL)
    optimizers = _load(contents, folder, OPTIMIZER)
    parallel = {mp for _, mp in (*models, *optimizers)}
    if len(parallel) > 1:
        text = f"{folder}: only model-parallel rank 0 of {len(parallel)} is compared"
        contents.problems.append(Problem("not_covered", text))
    ranks = [models[key] for key in sorted(models) if key[1] == 0]
    states = [optimizers[key]["optimizer_state_dict"] for key in sorted(optimizers) if key[1] == 0]
    if not ranks:
        raise ReadError(f"{folder} has no *_model_states.pt that can be read")
    world = ranks[0].get("dp_world_size") or len(states)
    sharded = isinstance(ranks[0].get("param_shapes"), list) and bool(states)
    stage = 0 if not sharded else 3 if "fp32_flat_groups" in states[0] else 2
    contents.facts |= {"zero_stage": ("1 or 2" if stage == 2 else stage), "dp": world}
    for key in ("global_steps", "epoch"):
        contents.values |= {key: ranks[0][key]} if isinstance(ranks[0].get(key), int) else {}
    if len(states) < world and (stage or optimizers):
        text = (
            f"{folder}: optimizer states of {world} ranks are expected, {len(states)} can be read"
        )
        contents.problems.append(Problem("file_missing", text))
        states = []
    if stage != 3:
        _add_module(contents, ranks[0])
    if states and stage == 2:
        _add_flat(contents, ranks[0]["param_shapes"], states)
    elif states and stage == 3:
        _add_sliced(contents, ranks, states, world)
    elif not sharded:
        _add_plain_optimizer(contents, ranks[0])
    return contents


def _load(contents: Contents, folder: Path, pattern: re.Pattern[str]) -> dict[tuple[int, int], Any]:
    """Return (data-parallel rank, model-parallel rank) -> the state in that rank's file."""
    found = {}
    for file in sorted(folder.iterdir()):
        match = pattern.fullmatch(file.name)
        if not match:
            continue
        try:
            saved = read_torch_file(str(file))
        except ReadError as error:
            contents.unreadable(error)
            continue
        contents.unsafe(str(file), saved.unsafe)
        if isinstance(saved.value, dict):
            found[int(match[1] or 0), int(match[2])] = saved.value
    return found


def _add_module(contents: Contents, state: dict[str, Any]) -> None:
    for name, value in leaves(state.get("module") or {}):
        contents.add_leaf(name, value)


def _add_flat(contents: Contents, shapes: list[dict[str, Shape]], states: list[Any]) -> None:
    """Add what stages 1 and 2 hold: groups that are flat over all ranks."""
    for group, named in enumerate(shapes):
        masters = [state["single_partition_of_fp32_groups"][group] for state in states]
        _cut(contents, MASTER, named, _joined(masters))
        moments = [_base_state(state, group) for state in states]
        for slot in moments[0]:
            if slot == "step":
                for name in named:
                    contents.optimizer[name, slot] = leaf(moments[0][slot])
            else:
                _cut(contents, slot, named, _joined([m[slot] for m in moments]))


def _base_state(state: dict[str, Any], group: int) -> dict[str, Any]:
    base = state.get("base_optimizer_state") or {}
    inner = base.get("state", {}) if isinstance(base, dict) else base
    found = inner.get(group, {}) if isinstance(inner, dict) else inner[group]
    return {slot: value for slot, value in found.items() if hasattr(value, "storage")}


def _cut(contents: Contents, slot: str, named: dict[str, Shape], flat: Tensor) -> None:
    at = 0
    for name, shape in named.items():
        size = math.prod(shape)
        if at + size > flat.numel:
            raise ReadError(f"{contents.path}: the partitions end within {name}")
        contents.optimizer[name, slot] = shaped(cut(flat, at, at + size), tuple(shape))
        at += size


def _add_sliced(
    contents: Contents, ranks: list[dict[str, Any]], states: list[Any], world: int
) -> None:
    """Add what stage 3 holds: each weight in equal parts; the masters are the only weights."""
    shapes = {name: shape for group in ranks[0]["param_shapes"] for name, shape in group.items()}
    module = ranks[0].get("module") or {}
    for name in ranks[0].get("buffer_names") or ():
        if name in module:
            contents.add_leaf(name, leaf(module[name]))
    for slot, flats in _stage3_slots(states).items():
        at = 0
        for name, shape in shapes.items():
            part = -(-math.prod(shape) // world)
            pieces = joined([cut(flat, at, at + part) for flat in flats])
            tensor = shaped(cut(pieces, 0, math.prod(shape)), tuple(shape))
            if slot == MASTER:
                contents.tensors[name] = tensor
            else:
                contents.optimizer[name, slot] = tensor
            at += part
    _add_frozen(contents, ranks)
    for alias, name in (ranks[0].get("shared_params") or {}).items():
        if name in contents.tensors:
            contents.tensors[alias] = contents.tensors[name]


def _stage3_slots(states: list[Any]) -> dict[str, list[Tensor]]:
    """Return slot -> the flat buffer of each rank; one rank's may be cut into subgroups."""
    slots = {MASTER: [_joined(state["fp32_flat_groups"]) for state in states]}
    inner = [(state.get("optimizer_state_dict") or {}).get("state") or {} for state in states]
    groups = sorted(inner[0])
    names = [
        k for k, v in (inner[0][groups[0]] if groups else {}).items() if getattr(v, "shape", ())
    ]
    for slot in names:
        slots[slot] = [_joined([state[group][slot] for group in groups]) for state in inner]
    return slots


def _add_frozen(contents: Contents, ranks: list[dict[str, Any]]) -> None:
    """Add weights that are not trained, which each rank keeps a part of."""
    for name, shape in (ranks[0].get("frozen_param_shapes") or {}).items():
        parts = [(rank.get("frozen_param_fragments") or {}).get(name) for rank in ranks]
        if all(part is not None for part in parts):
            flat = _joined(parts)
            tensor = shaped(cut(flat, 0, math.prod(shape)), tuple(shape))
            contents.tensors[name] = tensor


def _add_plain_optimizer(contents: Contents, state: dict[str, Any]) -> None:
    """Add an optimizer that is not sharded; its numbers are the order of the parameters."""
    optimizer = state.get("optimizer")
    if not isinstance(optimizer, dict):
        return
    buffers = set(state.get("buffer_names") or ())
    names = [name for name in state.get("module") or {} if name not in buffers]
    for number, slots in (optimizer.get("state") or {}).items():
        known = isinstance(number, int) and number < len(names)
        for slot, value in slots.items() if isinstance(slots, dict) else ():
            if hasattr(value, "storage"):
                contents.optimizer[names[number] if known else str(number), slot] = leaf(value)


def _joined(parts: list[Any]) -> Tensor:
    """Return flat parts one after the other."""
    flats = [leaf(part) for part in parts]
    if any(not isinstance(flat, Tensor) for flat in flats):
        raise ReadError("a partition of the optimizer is no tensor")
    return joined([shaped(flat, (flat.numel,)) if len(flat.shape) != 1 else flat for flat in flats])
