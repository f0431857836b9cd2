"""Why a call is where two runs part, what made it so, and what to look at next, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REASONS = {
    "dtype": "{slot} is {dtype} where the benchmark has {bench_dtype}",
    "shape": "{slot} has another shape",
    "argument": "{slot} is {value} where the benchmark has {bench_value}",
    "random": "inputs and arguments agree, {slot} does not: the operation draws from a random "
    "generator; both results may be draws from one distribution, elements are not compared",
    "other draws": "inputs and arguments agree, and {slot} is drawn from another distribution: "
    "zeros, mean and squares differ by more than chance",
    "other replicas": "put together, {slot} differs by {max_rel:.3g} of its scale, {ratio:.3g} "
    "times what rounding explains, and of ranks that should hold copies of one part not all do",
    "other bits input": "{slot} is not bit-equal, and nothing before it differs",
    "other bits output": "inputs agree, {slot} is not bit-equal",
    "nonfinite input": "{slot} does not hold NaN and infinities where the benchmark does",
    "nonfinite output": "inputs agree, NaN and infinities of {slot} do not",
    "suspect input": "{slot} differs by {max_rel:.3g} of its scale, {ratio:.3g} times what "
    "rounding explains, and nothing before it did",
    "suspect output": "inputs agree, {slot} differs by {max_rel:.3g} of its scale, {ratio:.3g} "
    "times what rounding explains",
    "checksum input": "the checksum of {slot} differs, and nothing before it did",
    "checksum output": "the checksums of all inputs agree, that of {slot} does not",
    "propagated": "{slot} differs, and it came from a call that is not on record",
}
"""Status and side -> why the runs part here."""

HINTS = {
    "dtype": "look at casts and autocast: what makes the two runs compute in other precisions",
    "shape": "look at batch size, sequence length and padding of the two runs",
    "argument": "set the same value in both runs",
    "random": "draw on the CPU, then move: a device generator gives other numbers on another "
    "device, whatever the seed",
    "weight": "load one checkpoint into both runs, or look at the initialisation of this weight",
    "replica": "look at the broadcast at the start, at the last reduction of gradients, and at the "
    "memory and cores of this rank: its copy of the weight went its own way",
    "outside": "feed both runs the same batch; where a random operation that is not on record made "
    "it, draw on the CPU, then move",
    "made": "look at {call}: only the target runs it",
    "other": "look at what stands in the place of {bench_call}: {call}",
    "compute": "run this call alone on both machines: crossrank reproduce DUMP {name}",
}
"""What to look at next."""


def reason_of(row: Mapping[str, Any]) -> str:
    """Return why the two runs part at this call: what agrees, and what does not."""
    status, side = row["status"], "input" if row["is_input"] else "output"
    ratio = row["ratio"]
    if row["alike"] is False:
        status = "other draws"
    elif status == "suspect" and row.get("replicas_differ"):
        status = "other replicas"
    elif status == "suspect" and row["max_rel"] is None:
        status = "checksum"
    elif status == "suspect" and ratio == float("inf"):  # integers, or --strict
        status = "other bits"
    key = status if status in REASONS else f"{status} {side}"
    words = {**row, "max_rel": row["max_rel"] or 0.0, "ratio": ratio or 0.0}
    return REASONS[key].format(**words)


def source_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the call that the difference comes from, None where none is on record, and why."""
    made, other = row["source_name"], row["source_bench_name"]
    if made or other:
        why = "another operation in its place" if made and other else "an operation that only one "
        why += "" if made and other else "run has"
        return {"call": made or other, "bench_call": other, "why": why}
    if row["status"] == "random":
        return {"call": row["name"], "why": "random op: device generator"}
    if row["status"] == "argument":
        return {"call": row["name"], "why": f"another argument: {row['slot']}"}
    if row["status"] == "dtype":
        return {"call": None, "why": "a dtype change"}
    if row["weight"]:
        return {"call": None, "why": "a weight that differed from the start"}
    if row["is_input"]:
        return {"call": None, "why": "data, or an operation that is not on record"}
    return {"call": row["name"], "why": "the operation itself"}


def hint_of(row: Mapping[str, Any], *, replicas: bool = False) -> str:
    """Return what to look at or change next; `replicas`: both sides are ranks of one run."""
    made, other = row["source_name"], row["source_bench_name"]
    if made and other:
        key = "other"
    elif made:
        key = "made"
    elif row["status"] in HINTS:
        key = row["status"]
    elif row["weight"]:
        key = "replica" if replicas else "weight"
    else:
        key = "outside" if row["is_input"] else "compute"
    return HINTS[key].format(call=made, bench_call=other, name=row["name"])
