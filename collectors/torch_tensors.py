"""Takes arguments and results apart: tensors with their slots, and plain values as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

Slots = list[tuple[str, torch.Tensor]]
"""Where a tensor stands, as `input.0.1`, and the tensor."""

LONGEST = 64
"""Plain values of one call that are written down."""


def tensors_in(value: Any, slot: str, found: Slots) -> Slots:
    """Append every tensor in nested lists, tuples and mappings to `found`, with its slot."""
    if isinstance(value, torch.Tensor):
        found.append((slot, value))
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            tensors_in(part, f"{slot}.{place}", found)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            tensors_in(part, f"{slot}.{key}", found)
    return found


def arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Slots:
    """Return the tensors among the arguments of a call: `input.0`, `input.weight`."""
    found: Slots = []
    for place, value in enumerate(args):
        tensors_in(value, f"input.{place}", found)
    for key, value in kwargs.items():
        tensors_in(value, f"input.{key}", found)
    return found


def plain_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return everything else among the arguments as JSON: slot -> type and value."""
    found: dict[str, Any] = {}
    for place, value in enumerate(args):
        _plain(value, f"input.{place}", found)
    for key, value in kwargs.items():
        _plain(value, f"input.{key}", found)
    return json.dumps(found) if found else ""


def _plain(value: Any, slot: str, found: dict[str, Any]) -> None:
    if value is None or isinstance(value, torch.Tensor) or len(found) >= LONGEST:
        return
    if isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            _plain(part, f"{slot}.{place}", found)
        return
    if isinstance(value, float) and not math.isfinite(value):
        value, kind = str(value), "float"
    elif isinstance(value, (bool, int, float, str)):
        kind = type(value).__name__
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        value = str(value) if isinstance(value, (slice, torch.dtype, torch.device)) else ""
    found[slot] = {"type": kind, "value": value}


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor of this rank that a tensor subclass wraps: DTensor's own part."""
    kind = type(tensor)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return tensor
    if kind.__name__ == "AsyncCollectiveTensor":
        return tensor.elem  # type: ignore[attr-defined, no-any-return]
    if kind.__name__ == "DTensor":
        return tensor._local_tensor  # type: ignore[attr-defined, no-any-return]
    return tensor


def layout_of(tensor: torch.Tensor) -> str | None:
    """Return the mesh and placements of a DTensor as JSON; None for a tensor of one rank."""
    if type(tensor).__name__ != "DTensor":
        return None
    mesh = tensor.device_mesh  # type: ignore[attr-defined]
    placements = [str(placement) for placement in tensor.placements]  # type: ignore[attr-defined]
    return json.dumps({"mesh": list(mesh.shape), "placements": placements})


def version_of(tensor: torch.Tensor) -> int:
    """Return how often the tensor was changed in place; 0 where nobody counts."""
    return 0 if tensor.is_inference() else tensor._version
