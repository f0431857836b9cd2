"""The report of `rl`: findings, trend per step, the worst samples and their tokens, all keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..render_rl import headline, sample_text, where
from ..wording import ranges
from .charts import Series, line_chart
from .page import SHOWN_ROWS, page
from .rl_tokens import token_views

VERDICTS = {"same": "same", "different": "different", "unknown": "cannot tell"}
SHOWN_KEYS = 4
"""Charts of a report."""


def draw(result: Mapping[str, Any], folder: Path) -> str:
    """Return the report of a result of `rl`."""
    import pyarrow.parquet as pq

    # not read_table, which loads half of Arrow for one file
    worst = pq.ParquetFile(folder / "worst_samples.parquet").read().to_pylist()
    tokens = pq.ParquetFile(folder / "shown_tokens.parquet").read().to_pylist()
    read = result["read"]
    return page(
        result,
        subject=result["a"] if read["mode"] == "keys" else f"{result['a']} and {result['b']}",
        verdict=VERDICTS[result["verdict"]],
        headline=headline(result),
        meaning=_meaning(result),
        facts=_facts(result),
        findings=[_card(finding) for finding in result["findings"]],
        trends=_trends(result["trend"]),
        keys=_keys(result["keys"]),
        worst=worst[:SHOWN_ROWS],
        worst_total=len(worst),
        samples=token_views(worst, tokens),
    )


def _meaning(result: Mapping[str, Any]) -> str:
    if result["verdict"] == "unknown":
        return "This is not a clean result: nothing was compared."
    if result["verdict"] == "same":
        return (
            "Samples, ids, masks, rewards and the rest agree; log-probs are no further apart than "
            "rounding to the coarsest number format on record explains."
        )
    return "Findings stand in causal order; what differs later may follow from the first."


def _facts(result: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    read = result["read"]
    lone = read["only_in_a_count"] + read["only_in_b_count"]
    return [
        ("samples joined", f"{read['matched']:,}", ""),
        ("by", read["matched_by"], ""),
        ("without a partner", f"{lone:,}", ""),
        ("steps", ranges(read["steps"], 6) or "none", ""),
        ("ranks", f"{read['ranks_a']:,} and {read['ranks_b']:,}", ""),
        ("findings", f"{len(result['findings']):,}", "findings" if result["findings"] else ""),
        ("warnings", f"{len(result['warnings']):,}", "warnings" if result["warnings"] else ""),
    ]


def _card(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **finding,
        "place": where(finding),
        "sample_text": sample_text(finding["sample"]) if finding["sample"] else "",
    }


def _trends(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return a chart for each log-prob key with at least two steps."""
    charts: list[tuple[str, dict[str, Any]]] = []
    for key in dict.fromkeys(row["key"] for row in rows):
        own = [row for row in rows if row["key"] == key and row["mean_abs"] is not None]
        if len({row["step"] for row in own}) > 1 and len(charts) < SHOWN_KEYS:
            tails = [(r["step"], r["p50"], r["p99"]) for r in own if r["p99"] is not None]
            lines = [
                Series("mean", [(r["step"], r["mean_abs"]) for r in own], tails, 0),
                Series("largest", [(r["step"], r["max_abs"]) for r in own], (), 1),
                Series("clipped share", [(r["step"], r["clip_share"]) for r in own], (), 2),
            ]
            label = f"|b - a| of {key}; band: median to 99 %"
            charts.append((key, line_chart(lines, x_label="step", y_label=label, log=True)))
    return charts


def _keys(keys: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"key": key, **row} for key, row in keys.items()]
