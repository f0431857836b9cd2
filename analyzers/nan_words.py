"""Why a call is an origin, and what to look at next, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FLOAT16_MAX = 65504.0
LARGE = 60.0
"""exp overflows float32 at 88.7; inputs beyond this are worth a look."""
FRAMEWORK_CODE = ("/site-packages/", "/dist-packages/", "/torch/nn/", "/mindspore/", "<frozen ")

REASONS: dict[tuple[str, str], str] = {
    ("compute", ""): "inputs finite, {slots} holds {found}",
    ("compute", "backward"): "the incoming gradient is finite, {slots} holds {found}",
    (
        "compute",
        "saturated",
    ): "inputs stay below it, {slots} stands exactly at the limit of {dtype}",
    (
        "compute",
        "turned",
    ): "{slots} holds {found}: a row with only -inf, which a mask had put there on purpose",
    ("communication", ""): "all {group_size} members brought finite values (magnitudes add up to "
    "{brought:.6g}), the result of {api} holds {found}",
    ("optimizer", ""): "the optimizer's update gave {found} from finite values",
    (
        "optimizer",
        "import",
    ): "the weight in {slots} holds {found} and was finite when the same call "
    "read it a step earlier: the update between the steps made it",
    (
        "optimizer",
        "lost",
    ): "the weight in {slots} holds {found} and was finite when it was last written on record, a "
    "step earlier: the update between the steps made it",
    ("parameter", ""): "the weight in {slots} held {found} when the call read it: it came in with "
    "the parameters of step {step}",
    (
        "uninitialized",
        "",
    ): "{slots} holds {found}: memory that had only been reserved, never written",
    ("gap", ""): "{slots} holds {found}, its producer had written finite values: an operation that "
    "was not captured, or memory that was overwritten",
    ("gap", "received"): "every member on record brought finite values, and {api} cannot overflow: "
    "a value changed on the way without leaving a record",
    ("input", ""): "{slots} held {found} when first read; no call on record made it",
    ("input", "saved"): "the saved variable holds {found}; what made it is not on record",
    ("unrecorded", ""): "it came out of {name} on rank {by_rank}: all that is on record went in "
    "finite, and rank {rank} left no record of this call",
}
"""Kind and entry of an origin (or the direction) -> why the bad value began there."""


HINTS = {
    "communication": "the sum over the group leaves the dtype's range: reduce in float32, or scale "
    "first",
    "first parameter": "look at the checkpoint or the initialisation that this weight came from",
    "parameter": "look at backward and optimizer of step {before}",
    "optimizer": "look at the optimizer's epsilon and state, and at gradients of exactly zero",
    "input": "look at what rank {rank} was fed in step {step}: its batch, or calls not on record",
    "unrecorded": "collect rank {rank} again: its part is what is missing",
    "uninitialized": "fill the memory before it is read, or mark it as a buffer",
    "gap": "record more (level, list of operations), or look for code that writes in place",
}
"""Kind of an origin -> what to look at next."""


def reason_of(origin: Mapping[str, Any]) -> str:
    """Return why the bad value began here: what went in, what came out, what is on record of it."""
    kind, entry = origin["kind"], origin["entry"]
    words = {
        "found": " and ".join(origin["found"]),
        "slots": ", ".join(origin["slots"]),
        **{key: origin.get(key) for key in ("api", "name", "rank", "by_rank", "step", "dtype")},
        **{key: origin.get(key) for key in ("group_size", "brought")},
    }
    return _reason(kind, entry, origin.get("phase")).format(**words)


def _reason(kind: str, entry: str, phase: str | None) -> str:
    for key in ((kind, entry), (kind, phase or ""), (kind, "")):
        if key in REASONS:
            return REASONS[key]
    raise AssertionError(f"no reason for an origin of kind {kind}")


def own_frame(frames: list[str]) -> str | None:
    """Return the innermost frame of the user's own code, `file:line in function | code`.

    The innermost frame of all when every one is of a framework; None when there is no stack.
    """
    own = (frame for frame in frames if not any(part in frame for part in FRAMEWORK_CODE))
    return next(own, frames[0] if frames else None)


def hint_of(origin: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """Return what to look at or change next, as far as the values on record tell."""
    kind, step = origin["kind"], origin["step"]
    if kind == "compute":
        return _compute_hint(origin, evidence)
    if kind == "parameter" and step == 0:
        kind = "first parameter"
    return HINTS[kind].format(rank=origin["rank"], step=step, before=step - 1)


def _compute_hint(origin: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    read = [t for t in evidence.get("tensors") or () if "input" in t["direction"]]
    ranges = [(t["min"], t["max"]) for t in read if t["min"] is not None and t["max"] is not None]
    largest = max((max(abs(low), abs(high)) for low, high in ranges), default=0.0)
    lowest = min((low for low, _ in ranges), default=0.0)
    if origin["entry"] == "turned":
        return "leave at least one place of each row unmasked, or set such rows to zero afterwards"
    if origin["dtype"] == "float16" and largest > FLOAT16_MAX**0.5:
        return (
            f"inputs reach {largest:.4g} in float16, whose limit is {FLOAT16_MAX:.0f}: compute in "
            "float32, or scale down first"
        )
    if any(0.0 in bounds for bounds in ranges):
        return "an input goes down to exactly 0: look at what makes it so, clamp it, add an epsilon"
    if largest > LARGE:
        return f"inputs reach {largest:.4g}: look at what makes them that large"
    if lowest < 0:
        return f"inputs go down to {lowest:.4g}: is the operation defined there?"
    return "look at the values that this call was given"
