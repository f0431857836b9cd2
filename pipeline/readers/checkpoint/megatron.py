"""Reads Megatron's `torch` checkpoints: one file a tensor-, pipeline- and expert-parallel rank.

Layer and expert numbers in a file count from 0 on each stage and rank; here they become those of
the model, and the parts of all ranks become one tensor, by the rules in layouts/megatron.yaml
(megatron/training/checkpointing.py; MindSpeed writes the same).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ReadError
from .contents import Contents, Problem, Replica, leaves
from .layouts import Family, family
from .megatron_model import is_gated, layer_numbers, model_config, per_expert
from .tensors import Tensor, cut, joined
from .torch_file import read_torch_file

FILE = "model_optim_rng.pt"
FOLDER = re.compile(r"mp_rank_(\d+)(?:_(\d+))?(?:_(\d+))?")
CHUNK = re.compile(r"model(\d*)")


@dataclass(frozen=True)
class Place:
    """Where a model's part was: tensor-, pipeline-, expert-parallel rank, and virtual stage."""

    tp: int
    pp: int
    ep: int
    chunk: int = 0

    def __str__(self) -> str:
        text = f"tp rank {self.tp}, pp rank {self.pp}, ep rank {self.ep}"
        return text + f", chunk {self.chunk}" * bool(self.chunk)


def read_megatron(path: Path, folder: Path, extra: str = "") -> Contents:
    """Return what the folder of one iteration holds.

    Raises:
        ReadError: not one of its files can be read.
    """
    contents = Contents(str(path), "megatron", "megatron", facts={"folder": folder.name})
    states = _load(contents, folder)
    if not states:
        told = "; ".join(p.text for p in contents.problems)
        raise ReadError(f"{folder}: no {FILE} can be read. {told}".strip())
    args = _args(states)
    sizes = {key: args.get(f"{word}_model_parallel_size") or 1 for key, word in SIZES.items()}
    contents.facts |= {**sizes, "vpp": args.get("virtual_pipeline_model_parallel_size") or 1}
    contents.facts["iteration"] = next(iter(states.values())).get("iteration")
    contents.config = model_config(args)
    rules, model = family("megatron", extra), {}
    for name, state in states.items():
        at = _place(name, sizes)
        for key, value in state.items():
            chunk = CHUNK.fullmatch(str(key))
            if chunk and isinstance(value, dict):
                place = replace(at, chunk=int(chunk[1] or 0))
                model[place] = _flat(rules, value, contents.config, sizes["ep"])
            elif key == "optimizer":
                _add_optimizer(contents, at, value)
    config = contents.config
    config["gated"] = is_gated(model.values()) if config["gated"] is None else config["gated"]
    _expect(contents, folder, sizes, {replace(place, chunk=0) for place in model}, args)
    _merge(contents, rules, layer_numbers(model, args.get("num_layers")), args)
    return contents


SIZES = {"tp": "tensor", "pp": "pipeline", "ep": "expert"}


def _load(contents: Contents, folder: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for rank in sorted(p for p in folder.iterdir() if FOLDER.fullmatch(p.name)):
        file = rank / FILE
        try:
            saved = read_torch_file(str(file))
            if not isinstance(saved.value, dict):
                raise ReadError(f"{file}: it holds no state")
        except ReadError as error:
            contents.unreadable(error)
            continue
        contents.unsafe(str(file), saved.unsafe)
        found[rank.name] = saved.value
    return found


def _args(states: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the training arguments, which every file has."""
    for state in states.values():
        fields: dict[str, Any] = getattr(state.get("args"), "fields", {})
        if fields:
            return fields
    return {}


def _place(name: str, sizes: dict[str, int]) -> Place:
    """Return the ranks in a folder's name; the second number is the stage if there are stages."""
    match = FOLDER.fullmatch(name)
    assert match
    tp, second, third = (int(n) if n else None for n in match.groups())
    assert tp is not None
    if third is not None:
        return Place(tp, second or 0, third)
    if second is not None and sizes["pp"] == 1 and sizes["ep"] > 1:
        return Place(tp, 0, second)
    return Place(tp, second or 0, 0)


def _flat(rules: Family, state: dict[str, Any], config: dict[str, Any], ep: int) -> dict[str, Any]:
    """Return the entries of one rank under present names, grouped experts apart."""
    found: dict[str, Any] = {}
    for name, value in leaves(state):
        name = rules.renamed(name)
        found |= per_expert(name, value, (config.get("experts") or 0) // ep)
    return found


def _add_optimizer(contents: Contents, place: Place, state: Any) -> None:
    """Add the optimizer of one rank; nothing in it says which parameter a number is."""
    for name, value in leaves(state):
        if isinstance(value, Tensor):
            path, _, slot = name.rpartition(".")
            contents.optimizer[f"tp{place.tp}.pp{place.pp}.ep{place.ep}.{path}", slot] = value


def _expect(
    contents: Contents, folder: Path, sizes: dict[str, int], there: set[Place], args: Any
) -> None:
    """Note ranks that the arguments tell of and that are not there."""
    tps, pps = {p.tp for p in there}, {p.pp for p in there}
    named = {p.code for p in contents.problems}
    gone = [f"tp rank {r}" for r in range(sizes["tp"]) if r not in tps]
    gone += [f"pp rank {r}" for r in range(sizes["pp"]) if r not in pps]
    gone += [f"ep rank {r}" for r in range(sizes["ep"]) if r not in {p.ep for p in there}]
    if gone and "file_unreadable" not in named:
        text = f"{folder}: {FILE} of {', '.join(gone)} is missing"
        contents.problems.append(Problem("file_missing", text))


def _merge(
    contents: Contents, rules: Family, model: dict[Place, dict[str, Any]], args: dict[str, Any]
) -> None:
    """Make one tensor of the parts of all ranks."""
    parts: dict[str, dict[Place, Any]] = defaultdict(dict)
    for place, entries in model.items():
        for name, value in entries.items():
            parts[name][place] = value
    expert_tp = args.get("expert_tensor_parallel_size") or contents.facts["tp"]
    for name, found in parts.items():
        if not all(isinstance(value, Tensor) for value in found.values()) or "_extra_state" in name:
            for value in list(found.values())[:1]:
                contents.add_leaf(name, value)
            continue
        tp = expert_tp if ".local_experts." in name else contents.facts["tp"]
        _merge_one(contents, rules, name, found, tp)


def _merge_one(
    contents: Contents, rules: Family, name: str, found: dict[Place, Tensor], tp: int
) -> None:
    by_rank: dict[int, tuple[Place, Tensor]] = {}
    for place in sorted(found, key=lambda p: (p.pp, p.chunk, p.ep, p.tp)):
        rank = place.tp % tp
        if rank in by_rank:  # another copy: expert-parallel ranks, tied embeddings
            contents.replicas.append(Replica(name, str(place), by_rank[rank][1], found[place]))
        else:
            by_rank[rank] = place, found[place]
    if len(by_rank) < tp:
        return _lost(contents, name, tp - len(by_rank))
    ordered = [by_rank[rank] for rank in sorted(by_rank)]
    tensors = [tensor for _, tensor in ordered]
    rule = rules.find(name)
    split = rule[0].split if rule else ""
    if tp == 1:
        contents.tensors[name] = tensors[0]
    elif split == "copy":
        contents.tensors[name] = tensors[0]
        contents.replicas += [Replica(name, str(p), tensors[0], t) for p, t in ordered[1:]]
    elif split == "columns":
        contents.tensors[name] = joined(tensors, 1)
    elif split == "rows" and rule and rule[0].layout == "halves if gated" and _gated(contents):
        contents.tensors[name] = _gates_above_ups(tensors)
    elif split == "rows":
        contents.tensors[name] = joined(tensors)
    else:
        contents.unmerged[name] = tensors
    return None


def _gated(contents: Contents) -> bool:
    return bool(contents.config.get("gated"))


def _gates_above_ups(tensors: list[Tensor]) -> Tensor:
    """Return one matrix of the gates of all ranks and then the ups; each rank has its own two."""
    half = tensors[0].shape[0] // 2
    gates = [cut(tensor, 0, half) for tensor in tensors]
    return joined(gates + [cut(tensor, half, 2 * half) for tensor in tensors])


def _lost(contents: Contents, name: str, count: int) -> None:
    text = f"{contents.path}: {name} is incomplete, {count} tensor-parallel parts are missing"
    contents.problems.append(Problem("file_missing", text, (name,)))
