"""What a call made: new values, views of what it was given, memory that nothing wrote yet."""

from __future__ import annotations

import torch

from .torch_call import Call
from .torch_lineage import Value
from .torch_memory import memory_of, region_of
from .torch_names import MEMORY_ONLY, PARTIAL_WRITES, PARTLY_WRITTEN
from .torch_rows import Row, Rows, is_bad
from .torch_tensors import Slots, local


def result_rows(rows: Rows, call: Call, results: Slots, changed: set[int], seq: int) -> list[Row]:
    """Return the rows of the results of a call that came back.

    Args:
        rows: makes them.
        call: its own rows are set right where it only looked at memory.
        results: tensors that it returned or changed.
        changed: ids of those that it was given and wrote into.
        seq: the call.
    """
    if call.written is not None:
        row = rows.made("output.0", call.written, seq, fresh=True)
        return [row | {"requires_grad": results[0][1].requires_grad}]
    partly = PARTLY_WRITTEN.get(call.api.name, ())
    read = {memory_of(local(t)) for _, t in call.inputs}
    reserved = {memory_of(local(t)) for _, t in call.inputs if rows.is_reserved(t)}
    fresh = [
        slot not in partly and (bool(partly) or id(t) in changed or memory_of(local(t)) not in read)
        for slot, t in results
    ]
    parts = [
        None if new else rows.lineage.in_memory(local(t)) for (_, t), new in zip(results, fresh)
    ]
    if all(part is not None and part.reserved for part in parts):
        call.rows = [row | {"role": "buffer"} for row in call.rows]  # a view reads none of it
    bad = any(is_bad(row) for row in call.rows if row["role"] == "value")
    made = []
    for (slot, tensor), new, part in zip(results, fresh, parts):
        only_memory = (
            call.api.name in MEMORY_ONLY
            or slot in partly
            or (call.api.name in PARTIAL_WRITES and bool(reserved) and not bad)
            or (part is not None and part.reserved)
        )
        inside = _made_inside(rows, call, tensor)
        if inside:
            made.append(rows.seen(slot, tensor, "output", "echo"))
            made[-1].update(value_id=inside.id, producer_seq=inside.seq)
            continue
        role = "buffer" if only_memory else "value"
        made.append(rows.made(slot, tensor, seq, fresh=new, role=role))
        if part and is_bad(made[-1]) and not part.is_bad:
            part = rows.lineage.unwritten(local(tensor))
        if part:
            _say_which_part(part, call, tensor, is_bad(made[-1]))
    return made


def _made_inside(rows: Rows, call: Call, tensor: torch.Tensor) -> Value | None:
    """Return the value of a result that a recorded call inside of a Function made."""
    if call.api.prefix != "Function":
        return None
    value = rows.lineage.value_of(local(tensor))
    return value if value.order > call.started and value.seq is not None else None


def _say_which_part(part: Value, call: Call, view: torch.Tensor, bad: bool) -> None:
    """Say that a view read the part of memory that it shows, whoever wrote the rest last.

    Not of a good view of bad memory: who made its part did not make that.
    """
    memory, region = memory_of(local(view)), region_of(local(view))
    for row, (_, tensor) in zip(call.rows, call.inputs):
        larger = memory_of(local(tensor)) == memory and region_of(local(tensor)) != region
        if larger and (bad or not is_bad(row)):
            row.update(value_id=part.id, producer_seq=part.seq, producer_slot=part.slot)
