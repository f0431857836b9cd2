"""What a communication record means: who takes part, what is read, what is a result.

msprobe writes the arguments of a communication call twice, as inputs and as outputs. Which of them
the operation reads and which it fills follows from the signature: that of torch.distributed, which
mindspore.mint.distributed shares. mindspore.communication.comm_func returns its results instead.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

WORLD_NAMES = ("hccl_world_group", "nccl_world_group", "mccl_world_group")
LARGEST_WORLD = 16384


@dataclass(frozen=True)
class Operation:
    """Parameters in order; which is read, which is filled, and whether by the root alone."""

    parameters: tuple[str, ...]
    reads: str = ""
    fills: str = ""
    root_reads: bool = False
    root_fills: bool = False
    point_to_point: bool = False
    returns: bool = False


def _operation(parameters: str, reads: str = "", fills: str = "", **how: bool) -> Operation:
    return Operation(tuple(parameters.split()), reads, fills, **how)


_SEND = _operation("tensor dst group tag group_dst", "tensor", point_to_point=True)
_RECV = _operation("tensor src group tag group_src", fills="tensor", point_to_point=True)
_GATHER_BASE = _operation(
    "output_tensor input_tensor group async_op", "input_tensor", "output_tensor"
)
_SCATTER_BASE = _operation("output input op group async_op", "input", "output")

OPERATIONS: Mapping[str, Operation] = {
    "all_reduce": _operation("tensor op group async_op", "tensor", "tensor"),
    "broadcast": _operation(
        "tensor src group async_op group_src", "tensor", "tensor", root_reads=True
    ),
    "reduce": _operation(
        "tensor dst op group async_op group_dst", "tensor", "tensor", root_fills=True
    ),
    "all_gather": _operation("tensor_list tensor group async_op", "tensor", "tensor_list"),
    "all_gather_into_tensor": _GATHER_BASE,
    "_all_gather_base": _GATHER_BASE,
    "gather": _operation(
        "tensor gather_list dst group async_op group_dst", "tensor", "gather_list", root_fills=True
    ),
    "scatter": _operation(
        "tensor scatter_list src group async_op group_src",
        "scatter_list",
        "tensor",
        root_reads=True,
    ),
    "reduce_scatter": _operation("output input_list op group async_op", "input_list", "output"),
    "reduce_scatter_tensor": _SCATTER_BASE,
    "_reduce_scatter_base": _SCATTER_BASE,
    "all_to_all": _operation(
        "output_tensor_list input_tensor_list group async_op",
        "input_tensor_list",
        "output_tensor_list",
    ),
    "all_to_all_single": _operation(
        "output input output_split_sizes input_split_sizes group async_op", "input", "output"
    ),
    "send": _SEND,
    "isend": _SEND,
    "recv": _RECV,
    "irecv": _RECV,
}  # https://docs.pytorch.org/docs/stable/distributed.html

RETURNING: Mapping[str, Operation] = {
    "all_reduce": _operation("tensor op group async_op", "tensor", returns=True),
    "broadcast": _operation("tensor src group", "tensor", root_reads=True, returns=True),
    "reduce": _operation("tensor dst op group", "tensor", root_fills=True, returns=True),
    "all_gather_into_tensor": _operation("tensor group async_op", "tensor", returns=True),
    "gather_into_tensor": _operation("tensor dst group", "tensor", root_fills=True, returns=True),
    "scatter_tensor": _operation("tensor src group", "tensor", root_reads=True, returns=True),
    "reduce_scatter_tensor": _operation("tensor op group async_op", "tensor", returns=True),
    "all_to_all_single_with_output_shape": _operation(
        "output_shape tensor output_split_sizes input_split_sizes group async_op",
        "tensor",
        returns=True,
    ),
    "send": _SEND,
    "isend": _SEND,
    "recv": _operation("tensor src group tag", point_to_point=True, returns=True),
    "irecv": _operation("tensor src group tag", point_to_point=True, returns=True),
}  # mindspore.communication.comm_func

_UNKNOWN = Operation((), returns=True)


class Communication:
    """One communication record, bound to the signature of its operation."""

    def __init__(self, prefix: str, api: str, record: Mapping[str, Any], rank: int) -> None:
        returning = prefix == "Distributed" and _mentions_mindspore(record)
        self.operation = (RETURNING if returning else OPERATIONS).get(api, _UNKNOWN)
        positional = record.get("input_args") or []
        keywords = record.get("input_kwargs") or {}
        names = [*self.operation.parameters[: len(positional)], *keywords]
        self._by_input = dict(zip(map(str, range(len(positional))), names, strict=False))
        self._by_output = dict(zip(map(str, range(len(names))), names, strict=True))
        self._given = dict(zip(names, [*positional, *keywords.values()], strict=False))
        self._group()
        self.root: int | None = None
        self.peer: int | None = None
        other = self._rank("src") if "src" in self.operation.parameters else self._rank("dst")
        if self.operation.point_to_point:
            self.peer = other
        else:
            self.root = other
        self._is_root = self.root is None or self.root == rank

    def role(self, slot: str, operation: str | None = None) -> str:
        """Return value, buffer or echo for a tensor.

        Args:
            slot: "input.0", "output.1.3".
            operation: of the P2POp that it belongs to: a receive fills its tensor, a send reads it.
        """
        side, _, place = slot.partition(".")
        if operation:
            if "recv" in operation:
                return "buffer" if side == "input" else "value"
            return "value" if side == "input" else "echo"
        place = place.partition(".")[0]
        if self.operation is _UNKNOWN:
            return "value"
        if side == "input":
            parameter = self._by_input.get(place, place)
            read = parameter == self.operation.reads
            return (
                "value" if read and (self._is_root or not self.operation.root_reads) else "buffer"
            )
        parameter = self._by_output.get(place, "")
        if self.operation.returns or parameter == self.operation.fills:
            return "value" if self._is_root or not self.operation.root_fills else "buffer"
        return "echo"

    def columns(self, running: Counter[str]) -> dict[str, Any]:
        """Return the communication columns of the call; counts it in its group."""
        operation = self._given.get("op")
        number = None
        if not self.operation.point_to_point:
            number = running[self.group_id or ""]
            running[self.group_id or ""] += 1
        return {
            "group_id": self.group_id,
            "group_ranks": self.group_ranks,
            "group_seq": number,
            "peer": self.peer,
            "root": self.root,
            "tag": self._plain("tag"),
            "reduce_op": _reduce_op(operation) if "op" in self.operation.parameters else None,
            "async": self._plain("async_op"),
        }

    def _group(self) -> None:
        group = self._given.get("group")
        self.group_id: str | None = None
        self.group_ranks: list[int] | None = None
        if isinstance(group, dict):
            self.group_id = group.get("group_id") or group.get("value")
            self.group_ranks = group.get("group_ranks")
        if self.group_id in WORLD_NAMES:
            self.group_id = None

    def _plain(self, name: str) -> Any:
        item = self._given.get(name)
        return item.get("value") if isinstance(item, dict) else None

    def _rank(self, name: str) -> int | None:
        """Return the global rank given as `src` or `dst`, or by its place in the group."""
        rank = self._plain(name)
        if isinstance(rank, int):
            return rank
        place = self._plain(f"group_{name}")
        if not isinstance(place, int):
            return None
        return self.group_ranks[place] if self.group_ranks else place


def operations(items: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return slot -> operation of the P2POps among recorded items."""
    return {
        slot: str(item.get("op"))
        for slot, item in items
        if isinstance(item, dict) and "class_type" in item
    }


def with_world(item: dict[str, Any]) -> dict[str, Any]:
    """Return a P2POp with the ranks of its group; None where its id does not tell."""
    return item | {"group_ranks": _world_of(str(item.get("group_id")))}


@lru_cache(maxsize=256)
def _world_of(group_id: str) -> list[int] | None:
    """Return ranks 0 to n-1 if `group_id` is msprobe's id of such a group, else None.

    The id is the CRC-32 of the text of the rank list, eight hexadecimal digits.
    """
    text = zlib.crc32(b"[0")
    for size in range(1, LARGEST_WORLD):
        if format(zlib.crc32(b"]", text), "08x") == group_id:
            return list(range(size))
        text = zlib.crc32(f", {size}".encode(), text)
    return None


def _mentions_mindspore(record: Mapping[str, Any]) -> bool:
    outputs = record.get("output")
    items = outputs if isinstance(outputs, list) else [outputs]
    return any(isinstance(item, dict) and "mindspore" in str(item.get("type")) for item in items)


def _reduce_op(item: Any) -> str | None:
    if item is None:
        return "SUM"
    text = item.get("value") if isinstance(item, dict) else None
    return text.rpartition(".")[2].upper() if isinstance(text, str) else None
