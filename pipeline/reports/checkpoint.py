"""The report of `checkpoint`: differences by layer and kind of weight, findings, the worst."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ..checkpoint_text import checkpoint_headline
from ..wording import number
from .charts import HeatCell, bar_chart, heat_map
from .page import page

VERDICTS = {"same": "same", "different": "different", "unknown": "cannot tell"}
SHOWN_FINDINGS = 2000
SHOWN_LAYERS = 200
SMALLEST = 1e-9
"""A relative difference that counts as next to nothing; the map's colours begin there."""

MEANINGS = {
    "same": "Every weight of one has its equal in the other, up to rounding and padding.",
    "different": "",
    "unknown": "This is not a clean result: a part of it could not be read or compared.",
}


def draw(result: Mapping[str, Any], folder: Path) -> str:
    """Return the report of a result of `checkpoint`."""
    findings = result["findings"]
    return page(
        result,
        subject=f"{result['a']} against {result['b']}",
        verdict=VERDICTS[result["verdict"]],
        headline=checkpoint_headline(result),
        meaning=MEANINGS[result["verdict"]],
        facts=_facts(result),
        gaps=[w["text"] for w in result["warnings"] if w["code"].startswith("file_")],
        heat=_heat(_rows(folder, "layers")),
        histogram=_histogram(_rows(folder, "histogram")),
        worst=next((f for f in findings if f["status"] == "different"), None),
        rows=[_row(finding) for finding in findings[:SHOWN_FINDINGS]],
        sides=_sides(result),
    )


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    file = folder / f"{table}.parquet"
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist() if file.is_file() else []
    return rows


def _facts(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    read = result["read"]
    statuses = ("equal", "rounded", "padding", "tied", "different", "only_in_a", "only_in_b")
    words = {"only_in_a": "only in A", "only_in_b": "only in B"}
    facts = [("tensors", f"{read['tensors']:,}", "")]
    facts += [
        (words.get(s, s), f"{read[s]:,}", "" if s == "equal" else "findings")
        for s in (*statuses, "incomparable", "opaque")
        if read.get(s)
    ]
    facts.append(("read", f"{read['bytes'] / 2**20:,.1f} MiB", ""))
    warnings = len(result["warnings"])
    return [*facts, ("warnings", f"{warnings:,}", "warnings" if warnings else "")]


def _sides(result: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what is known of how either side was written."""
    return [
        {
            "side": side.upper(),
            "path": result[side],
            "format": result["read"][side]["format"],
            "facts": ", ".join(
                f"{key} {value}"
                for key, value in result["read"][side].items()
                if key != "format" and value is not None
            ),
        }
        for side in ("a", "b")
    ]


def _heat(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the map of the relative difference: a row for each kind of weight, layers across."""
    if not any(row["differing"] or row["unknown"] for row in rows):
        return None
    layers = sorted({row["layer"] for row in rows if row["layer"] is not None})[:SHOWN_LAYERS]
    columns: list[int | None] = [
        *([None] if any(r["layer"] is None for r in rows) else []),
        *layers,
    ]
    found = {(row["part"], row["layer"]): row for row in rows}
    parts = sorted({row["part"] for row in rows})
    labels = ["no layer" if layer is None else str(layer) for layer in columns]
    lines = [(part, [_cell(found.get((part, layer))) for layer in columns]) for part in parts]
    return heat_map(labels, lines)


def _cell(row: dict[str, Any] | None) -> HeatCell:
    if row is None:
        return HeatCell(None)
    where = row["part"] if row["layer"] is None else f"layer {row['layer']}, {row['part']}"
    if row["relative_l2"] is None:
        return HeatCell(None, "?", f"{where}: could not be compared")
    apart = row["relative_l2"]
    tip = f"{where}: {number(apart)} relative, the worst of {row['tensors']}: {row['name']}"
    return HeatCell(_share(apart) if row["differing"] else 0.0, "", tip)


def _share(apart: float) -> float:
    """Return how dark a cell is, by the order of magnitude of its difference."""
    if not apart > SMALLEST:
        return 0.1
    return min(1.0, 0.15 + 0.85 * (1 - math.log10(min(apart, 1.0)) / math.log10(SMALLEST)))


def _histogram(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not rows:
        return None
    bars = [("equal" if r["power"] is None else f"2^{r['power']}", r["elements"]) for r in rows]
    return bar_chart(bars, x_label="absolute difference, at least", y_label="elements", log=True)


def _row(finding: Mapping[str, Any]) -> dict[str, Any]:
    index = finding.get("first_index")
    return {
        "status": finding["status"],
        "name": finding["name"],
        "name_b": finding["name_b"] if finding["name_b"] != finding["name"] else "",
        "shape": str(finding.get("shape") or ""),
        "unequal": finding.get("unequal"),
        "first": "" if index is None else str(index),
        "cos": finding.get("cos"),
        "l2": finding.get("l2"),
        "max_abs": finding.get("max_abs"),
        "max_rel": finding.get("max_rel"),
        "hint": finding["hint"],
    }
