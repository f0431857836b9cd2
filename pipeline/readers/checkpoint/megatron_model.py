"""What Megatron's arguments say of a model, and how its numbers and experts become the model's."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from .files import InFile
from .flat import shaped
from .tensors import Tensor, selected, transposed, whole

LAYER = re.compile(r"(.*?\blayers)\.(\d+)\.(.*)")
EXPERT = re.compile(r"(.*\.local_experts)\.(\d+)\.(.*)")
GROUPED = re.compile(r"(.*\.experts)\.weight([12])")


class Stage(Protocol):
    """Where a part of the model was."""

    @property
    def pp(self) -> int:
        """Return the pipeline stage."""

    @property
    def ep(self) -> int:
        """Return the expert-parallel rank."""

    @property
    def chunk(self) -> int:
        """Return the virtual stage."""


Where = TypeVar("Where", bound=Stage)


def model_config(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that layout rules need, of the training arguments."""
    heads = args.get("num_attention_heads")
    grouped = args.get("group_query_attention") and args.get("num_query_groups")
    size = args.get("kv_channels")
    if not size and heads and args.get("hidden_size"):
        size = args["hidden_size"] // heads
    known = [key for key in ("swiglu", "gated_linear_unit") if args.get(key) is not None]
    return {
        "heads": heads,
        "groups": args["num_query_groups"] if grouped else heads,
        "head_dim": size,
        "experts": args.get("num_experts"),
        "gated": any(args[key] for key in known) if known else None,
        "vocab_size": args.get("vocab_size"),
        "padded": True,
        "padding_below": (args.get("make_vocab_size_divisible_by") or 128)
        * (args.get("tensor_model_parallel_size") or 1),
        "tied": args.get("untie_embeddings_and_output_weights") is False,
    }


def is_gated(parts: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether the first layer of a feed-forward has twice the rows that the second takes."""
    for entries in parts:
        for name, first in entries.items():
            second = entries.get(name.replace("linear_fc1", "linear_fc2"))
            if name.endswith("linear_fc1.weight") and isinstance(second, Tensor):
                return bool(first.shape[0] == 2 * second.shape[1])
    return False


def layer_numbers(
    model: Mapping[Where, Mapping[str, Any]], layers: int | None
) -> dict[Where, dict[str, Any]]:
    """Return the parts under the model's own layer and expert numbers.

    Stages may hold different numbers of layers. Layers run through all stages of the first chunk,
    then through those of the second.
    """
    counts: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
    experts: dict[int, int] = {}
    for place, entries in model.items():
        for name in entries:
            if layer := LAYER.fullmatch(name):
                stage, number = (place.chunk, place.pp), int(layer[2]) + 1
                found = counts[layer[1]]
                found[stage] = max(found.get(stage, 0), number)
            if expert := EXPERT.fullmatch(name):
                experts[place.ep] = max(experts.get(place.ep, 0), int(expert[2]) + 1)
    offsets = {prefix: _offsets(prefix, found, model, layers) for prefix, found in counts.items()}
    each = max(experts.values(), default=0)
    return {
        place: {_numbered(name, place, offsets, each): v for name, v in entries.items()}
        for place, entries in model.items()
    }


def _offsets(
    prefix: str,
    counts: Mapping[tuple[int, int], int],
    model: Mapping[Where, Mapping[str, Any]],
    layers: int | None,
) -> dict[tuple[int, int], int]:
    """Return (chunk, stage) -> the number of its first layer."""
    if _are_global(prefix, model):
        return dict.fromkeys(counts, 0)
    chunks = range(max(c for c, _ in counts) + 1)
    stages = range(max(p for _, p in counts) + 1)
    absent = [(c, p) for c in chunks for p in stages if (c, p) not in counts]
    gap = (layers - sum(counts.values())) // len(absent) if layers and absent else 0
    offsets, at = {}, 0
    for chunk in chunks:
        for stage in stages:
            offsets[chunk, stage] = at
            at += counts.get((chunk, stage), max(gap, 0))
    return offsets


def _are_global(prefix: str, model: Mapping[Where, Mapping[str, Any]]) -> bool:
    """Tell whether the stages' numbers are those of the model: none is used by two stages."""
    stages: dict[tuple[int, int], set[int]] = defaultdict(set)
    for place, entries in model.items():
        for name in entries:
            layer = LAYER.fullmatch(name)
            if layer and layer[1] == prefix:
                stages[place.chunk, place.pp].add(int(layer[2]))
    used = [number for numbers in stages.values() for number in numbers]
    return len(stages) > 1 and len(used) == len(set(used))


def _numbered(
    name: str, place: Stage, offsets: Mapping[str, Mapping[tuple[int, int], int]], experts: int
) -> str:
    if layer := LAYER.fullmatch(name):
        number = int(layer[2]) + offsets[layer[1]][place.chunk, place.pp]
        name = f"{layer[1]}.{number}.{layer[3]}"
    if expert := EXPERT.fullmatch(name):
        name = f"{expert[1]}.{int(expert[2]) + place.ep * experts}.{expert[3]}"
    return name


def per_expert(name: str, value: Any, experts: int) -> dict[str, Any]:
    """Return an entry; grouped experts, of which one matrix holds all, as one matrix each.

    `weight1` is (experts, hidden, 2 x ffn) and `weight2` (experts, ffn, hidden) in memory,
    transposed to what a layer of one expert has (megatron/core/transformer/moe/experts.py).
    """
    grouped = GROUPED.fullmatch(name)
    if not grouped or not experts or not isinstance(value, Tensor):
        return {name: value}
    rows, columns = value.shape
    first = grouped[2] == "1"
    shape = (experts, rows, columns // experts) if first else (experts, rows // experts, columns)
    flat = _flattened(value)
    if flat is None or flat.numel != shape[0] * shape[1] * shape[2]:
        return {name: value}
    layer = f"linear_fc{grouped[2]}.weight"
    stacked = shaped(flat, shape)
    return {
        f"{grouped[1]}.local_experts.{n}.{layer}": transposed(selected(stacked, n))
        for n in range(experts)
    }


def _flattened(tensor: Tensor) -> Tensor | None:
    """Return the elements of a tensor that lies in one piece, as one dimension."""
    source = tensor.boxes[0].source if len(tensor.boxes) == 1 else None
    if not isinstance(source, InFile) or source.strides or source.shape != tensor.shape:
        return None
    return whole(replace(source, shape=(tensor.numel,)), tensor.dtype)


STACKED = re.compile(r"(.*?\blayers)\.(?!\d)(.+)")
STACKED_EXPERTS = re.compile(r"(.*\.experts)\.experts\.(?!\d)(.+)")


def unstacked(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """Return the tensors of one that holds all layers, and all experts, as torch_dist has it."""
    if match := STACKED.fullmatch(name):
        found: dict[str, Tensor] = {}
        for number in range(tensor.shape[0] if tensor.shape else 0):
            layer = f"{match[1]}.{number}.{match[2]}"
            found |= unstacked(layer, selected(tensor, number))
        return found
    if (match := STACKED_EXPERTS.fullmatch(name)) and len(tensor.shape) > 1:
        return {
            f"{match[1]}.local_experts.{number}.{match[2]}": selected(tensor, number)
            for number in range(tensor.shape[0])
        }
    return {name: tensor}
