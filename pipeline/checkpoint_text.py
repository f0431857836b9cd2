"""The answer of `checkpoint` in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .wording import closing, count, number

SHOWN = 12
SHOWN_WARNINGS = 8


def checkpoint_text(result: Mapping[str, Any], out: Path | None = None) -> str:
    """Return the answer; `out` is the folder of the full result."""
    lines = [checkpoint_headline(result), _read(result)]
    findings = [f for f in result["findings"] if f["status"] not in ("rounded", "equal")]
    if findings:
        lines.append("")
    for finding in findings[:SHOWN]:
        lines += _finding(finding)
    if len(findings) > SHOWN:
        lines.append(f"... and {len(findings) - SHOWN:,} more in result.json")
    lines += closing(result["warnings"], SHOWN_WARNINGS, out)
    return "\n".join(lines) + "\n"


def checkpoint_headline(result: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    read, findings = result["read"], result["findings"]
    if result["verdict"] == "unknown":
        told = [w for w in result["warnings"] if w["code"].startswith("file_")]
        if told:
            return f"Cannot tell: {count(len(told), 'file')} could not be read or trusted."
        if read.get("incomparable"):
            return f"Cannot tell: {count(read['incomparable'], 'tensor')} could not be compared."
        return "Cannot tell: no tensor of one goes with a tensor of the other."
    if result["verdict"] == "same":
        rounded = read.get("rounded", 0)
        text = f"The same weights: {count(read['tensors'] - read.get('opaque', 0), 'tensor')}"
        return text + (f", {rounded:,} of them up to rounding." if rounded else ".")
    different = [f for f in findings if f["status"] == "different"]
    alone = [f for f in findings if f["status"] in ("only_in_a", "only_in_b")]
    parts = [f"{count(len(different), 'tensor')} differ{'s' * (len(different) == 1)}"]
    parts = parts if different else []
    if alone:
        parts.append(f"{count(len(alone), 'tensor')} on one side only")
    first = (different or alone)[0]
    return f"Different: {', '.join(parts)}; first of all {first['name']}{_why(first)}."


def _why(finding: Mapping[str, Any]) -> str:
    if finding["hint"]:
        return f" ({finding['hint']})"
    if "first_index" in finding:
        return f" at {finding['first_index']}"
    return ""


def _read(result: Mapping[str, Any]) -> str:
    sides = " against ".join(f"{result[s]} ({_format(result['read'][s])})" for s in ("a", "b"))
    return f"compared {sides}: {result['read']['bytes'] / 2**20:,.1f} MiB"


def _format(facts: Mapping[str, Any]) -> str:
    sizes = [f"{key} {facts[key]}" for key in ("tp", "pp", "ep", "vpp") if facts.get(key, 1) != 1]
    return ", ".join([facts["format"], *sizes, count(facts["tensors"], "tensor")])


def _finding(finding: Mapping[str, Any]) -> list[str]:
    lines = [f"{finding['status']}: {finding['name']}"]
    if finding["name_b"] not in ("", finding["name"]):
        lines[0] += f"   (B: {finding['name_b']})"
    if "first_index" in finding:
        lines.append(
            f"   {finding['unequal']:,} of {finding['numel']:,} elements, first at "
            f"{finding['first_index']}; cos {number(finding['cos'])}, l2 {number(finding['l2'])}, "
            f"max abs {number(finding['max_abs'])}"
        )
    if finding["hint"]:
        lines.append(f"   {finding['hint']}")
    return lines
