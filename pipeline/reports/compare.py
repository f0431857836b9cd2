"""The report of `compare`: place of parting, map of modules, error along the run, table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from ..compare_text import (
    MEANINGS,
    headline,
    meaning,
    metrics_text,
    source_text,
    statuses,
)
from ..wording import number, ranges
from .charts import HeatCell, Series, heat_map, line_chart
from .page import page

VERDICTS = {"different": "different", "same": "same", "unknown": "cannot tell"}
SHOWN_MODULES, SHOWN_COLUMNS, SHOWN_LINES, SHOWN_FINDINGS = 80, 24, 8, 400
STATISTICS = ("max", "min", "mean", "norm")
WORST = 1e4
"""Multiple of the tolerance that is as dark as the map gets."""


def draw(result: Mapping[str, Any], folder: Path) -> str:
    """Return the report of a result of `compare`."""
    first = result["first_divergence"]
    findings = result["findings"]
    return page(
        result,
        subject=f"{result['bench']} (benchmark), {result['target']} (target)",
        verdict=VERDICTS.get(result["verdict"], result["verdict"]),
        headline=headline(result),
        meaning=meaning(result),
        facts=_facts(result),
        first=_first(first) if first else None,
        modules=_modules(_rows(folder, "module_errors"), first),
        profile=_profile(_rows(folder, "error_profile"), first),
        findings=[_finding(f) for f in findings[:SHOWN_FINDINGS]],
        total=sum(result["statuses"].values()),
        meanings=MEANINGS,
    )


def _rows(folder: Path, table: str) -> list[dict[str, Any]]:
    file = folder / f"{table}.parquet"
    if not file.exists():
        return []
    rows = duckdb.read_parquet(str(file))
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]


def _facts(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    read, warnings = result["read"], len(result["warnings"])
    return [
        ("ranks", f"{read['ranks']:,}", ""),
        ("steps", ranges(read["steps"], 6) or "none", ""),
        ("pairs of calls", f"{read['pairs']:,}", ""),
        ("pairs of tensors", f"{read['tensors']:,}", ""),
        ("only in the benchmark", f"{read['only_in_bench']:,}", ""),
        ("only in the target", f"{read['only_in_target']:,}", ""),
        *((f"agree: {key}", f"{n:,}", "") for key, n in read["agreement"].items() if n),
        *((status, f"{calls:,}", "findings") for status, calls in statuses(result)),
        ("warnings", f"{warnings:,}", "warnings" if warnings else ""),
    ]


def _first(first: Mapping[str, Any]) -> dict[str, Any]:
    """Return the place of parting in words."""
    file, _, code = (first["line"] or "").partition(" | ")
    return {
        **first,
        "file": file,
        "code": code,
        "source": source_text(first),
        "numbers": metrics_text(first["metrics"]),
        "tensors": [
            {
                **tensor,
                "status": tensor["kind"] or "agrees",
                "dtype": _both(tensor["bench_dtype"], tensor["dtype"]),
                "shape": _both(tensor["bench_shape"], tensor["shape"]),
                **{
                    key: _both(number(tensor[f"bench_{key}"]), number(tensor[key]))
                    for key in STATISTICS
                },
            }
            for tensor in first["tensors"]
        ],
    }


def _both(bench: Any, target: Any) -> str:
    return f"{target}" if bench == target else f"{bench} / {target}"


def _modules(rows: list[dict[str, Any]], first: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the map of modules by rank or, of a single rank, by phase; of the first step."""
    if not rows:
        return None
    step = first["step"] if first else min(row["step"] for row in rows)
    rows = [row for row in rows if row["step"] == step]
    several = len({row["rank"] for row in rows}) > 1
    key = "rank" if several else "phase"
    columns = sorted({row[key] for row in rows})[:SHOWN_COLUMNS]
    if not several:
        columns = [p for p in ("forward", "backward", "gradient", "optimizer", "") if p in columns]
    cells: dict[str, dict[Any, list[dict[str, Any]]]] = {}
    for row in sorted(rows, key=lambda row: int(row["first_seq"])):
        cells.setdefault(row["module"], {}).setdefault(row[key], []).append(row)
    worst = {
        name: max(r["worst"] for group in at.values() for r in group) for name, at in cells.items()
    }
    shown = set(sorted(cells, key=lambda name: -worst[name])[:SHOWN_MODULES])
    chart = heat_map(
        [f"rank {c}" if several else c or "other" for c in columns],
        [
            (name, [_cell(at.get(column)) for column in columns])
            for name, at in cells.items()
            if name in shown
        ],
    )
    return {"chart": chart, "step": step, "left_out": len(cells) - len(shown)}


def _cell(rows: list[dict[str, Any]] | None) -> HeatCell:
    if not rows:
        return HeatCell(None)
    worst = max(row["worst"] for row in rows)
    calls, differing = (sum(row[key] for row in rows) for key in ("calls", "differing"))
    share = 0.0
    if worst > 0.01:
        share = min(1.0, (math.log10(min(worst, WORST)) + 2) / (math.log10(WORST) + 2))
    tip = f"{worst:.3g} times the tolerance; {differing} of {calls} calls differ"
    return HeatCell(share, f"{differing}" if differing else "", tip)


def _profile(rows: list[dict[str, Any]], first: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the curve of the error along one step; a line for each of the first ranks."""
    if not rows:
        return None
    step = first["step"] if first else min(row["step"] for row in rows)
    rows = [row for row in rows if row["step"] == step]
    ranks = sorted({row["rank"] for row in rows})
    if first and first["rank"] not in ranks[:SHOWN_LINES]:
        ranks.insert(0, first["rank"])
    series = [
        Series(
            f"rank {rank}",
            [(row["seq"], row["max_rel"]) for row in rows if row["rank"] == rank],
            tone=place,
        )
        for place, rank in enumerate(ranks[:SHOWN_LINES])
    ]
    if not any(y > 0 for line in series for _, y in line.points):
        return None
    return line_chart(series, x_label="call", y_label="largest relative error", log=True)


def _finding(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **finding,
        "call": finding["call"] or "",
        "bench_call": "" if finding["bench_call"] == finding["call"] else finding["bench_call"],
        "max_rel": finding["metrics"].get("max_rel"),
        "ratio": finding["metrics"].get("ratio"),
    }
