"""Takes the names of msprobe's records apart.

Functional.linear.12.forward                  prefix, API, call number, direction
Module.layers.0.mlp.Mlp.forward.3             path, class, direction, call number
Module.layers.0.mlp.Mlp.parameters_grad.0     gradients of a module's own parameters
h.0.debug                                     a variable that the user saved
"""

from __future__ import annotations

from typing import NamedTuple

DIRECTIONS = ("forward", "backward")
_COMMUNICATION = ("Distributed", "MintDistributed")
_PRIMITIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather_into_tensor",
    "ReduceScatter": "reduce_scatter_tensor",
    "Broadcast": "broadcast",
    "AlltoAll": "all_to_all_single",
    "Send": "send",
    "Receive": "recv",
}


class Name(NamedTuple):
    """One record name, taken apart; None where the form has no such part."""

    api: str
    call_index: int | None
    phase: str | None
    kind: str
    module: str | None


def parse_name(name: str) -> Name:
    """Return the parts of a record name, read from the right; any text gives a name."""
    parts = name.split(".")
    if parts[-1] == "debug" and len(parts) > 2:
        return Name(".".join(parts[:-2]), _index(parts[-2]), None, "saved", None)
    if parts[0] in ("Module", "Cell"):
        return _module(parts)
    if parts[-1] in DIRECTIONS and len(parts) > 2:
        api, primitive = parts[-3], _PRIMITIVES.get(parts[-3])
        if parts[0] == "Primitive" and primitive:
            return Name(primitive, _index(parts[-2]), parts[-1], "comm", None)
        kind = "comm" if parts[0] in _COMMUNICATION else "compute"
        return Name(api, _index(parts[-2]), parts[-1], kind, None)
    return Name(name, None, None, "compute", None)


def _module(parts: list[str]) -> Name:
    for place in range(len(parts) - 1, 1, -1):
        if parts[place] in (*DIRECTIONS, "parameters_grad"):
            index = _index(parts[place + 1]) if place + 1 < len(parts) else None
            phase = "forward" if parts[place] == "forward" else "backward"
            path = ".".join(parts[1 : place - 1])
            return Name(parts[place - 1], index, phase, "module", path)
    return Name(parts[-1], None, None, "module", ".".join(parts[1:-1]))


def _index(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
