"""The report of `analyze`: summary, origins, map of first symptoms, ways between ranks, notes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..render_text import headline, next_command
from ..wording import ranges, ranks_text
from .analyze_cells import DAMAGE
from .analyze_map import map_view
from .analyze_paths import diagram
from .page import page

SHOWN_CARDS = 24
SHOWN_TENSORS = 64

VERDICTS = {"found": "found", "clean": "clean", "unknown": "cannot tell"}

KINDS = {
    "compute": "this call made it",
    "communication": "the communication itself made it",
    "input": "it came in with data",
    "parameter": "it came in with a weight",
    "optimizer": "the optimizer's update made it",
    "gap": "made between two calls on record",
    "uninitialized": "memory that was never written",
    "unrecorded": "from a rank without record",
}

CERTAINTIES = {
    "lineage": "it is on record which call made which tensor, so the value was followed from "
    "tensor to tensor",
    "order": "which call made which tensor is not on record, so the first bad value in the order "
    "of calls counts as the birth, and what follows on the rank as its consequence",
}

GAPS = {
    "rank_missing": "left no record",
    "shard_unreadable": "left a damaged record, of which a part is used",
    "step_incomplete": "left a record that breaks off, of which a part is used",
}


def draw(result: Mapping[str, Any], folder: Path) -> str:
    """Return the report of a result of `analyze`."""
    shown = range(len(result["origins"][:SHOWN_CARDS]))
    return page(
        result,
        **_summary(result),
        cards=[_card(result, index) for index in shown],
        map=map_view(result),
        diagrams=[diagram(result, index) for index in shown],
    )


def _summary(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer, what was read, and what was not."""
    read = result["read"]
    found = {key: len(result[key]) for key in ("origins", "benign", "warnings")}
    return {
        "subject": result["dump"],
        "headline": headline(result),
        "verdict": VERDICTS.get(result["verdict"], result["verdict"]),
        "meaning": _meaning(result),
        "facts": [
            ("ranks read", f"{read['ranks']:,} of {read['expected']:,}", ""),
            ("steps", ranges(read["steps"], 6) or "none", ""),
            ("calls", f"{read['calls']:,}", ""),
            ("tensors", f"{read['tensors']:,}", ""),
            ("origins", f"{found['origins']:,}", "origins" if found["origins"] else ""),
            ("benign", f"{found['benign']:,}", "benign" if found["benign"] else ""),
            ("warnings", f"{found['warnings']:,}", "warnings" if found["warnings"] else ""),
        ],
        "gaps": _gaps(result),
    }


def _meaning(result: Mapping[str, Any]) -> str:
    """Return what the verdict does and does not say; nothing where the headline says it all."""
    if result["verdict"] == "unknown":
        if not result["read"]["calls"]:
            return "No call could be read. This is not a clean result."
        return "No tensor on record has statistics; collect with them. This is not a clean result."
    if result["verdict"] == "clean":
        gaps = " This holds for what was read, not for what is missing." * bool(_gaps(result))
        return "Every NaN and infinity on record died out or was put there on purpose." + gaps
    if len(result["origins"]) > 1:
        return "None of these origins leads to another; their order in time is not known."
    return ""


def _gaps(result: Mapping[str, Any]) -> list[str]:
    """Return which ranks could not be read, or not as a whole."""
    ranks: dict[str, set[int]] = defaultdict(set)
    steps: dict[str, set[int]] = defaultdict(set)
    for warning in result["warnings"]:
        if warning["code"] in ("rank_missing", *DAMAGE):
            ranks[warning["code"]].add(warning["rank"])
            steps[warning["code"]].add(warning["step"])
    return [
        f"{ranks_text(ranks[code])} {text} ({_steps(steps[code])})"
        for code, text in GAPS.items()
        if code in ranks
    ]


def _steps(steps: set[int]) -> str:
    return f"step{'' if len(steps) == 1 else 's'} {ranges(steps, 6)}"


def _card(result: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return one origin in words."""
    origin = result["origins"][index]
    file, _, code = (origin["source"] or "").partition(" | ")
    members: dict[str, list[int]] = defaultdict(list)
    for member in origin.get("members") or ():
        members[member["call"] or "a call without record"].append(member["rank"])
    tensors = origin["tensors"]
    return {
        "index": index,
        "origin": origin,
        "found": " and ".join(origin["values"]),
        "kind": KINDS.get(origin["kind"], ""),
        "certainty": CERTAINTIES.get(origin["certainty"], ""),
        "file": file,
        "code": code,
        "tensors": [{**t, "shape": _shape(t["shape"])} for t in tensors[:SHOWN_TENSORS]],
        "more_tensors": max(0, len(tensors) - SHOWN_TENSORS),
        "members": [(call, ranks_text(ranks)) for call, ranks in members.items()],
        "reached": ranks_text(origin["reached"]) if origin["reached"] else "",
        "command": next_command(result, origin),
    }


def _shape(shape: list[int] | None) -> str:
    return "" if shape is None else "[" + ", ".join(map(str, shape)) + "]"
