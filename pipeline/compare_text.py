"""The answer of `compare` in the terminal: where two runs part, why, and what followed from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .wording import closing, count, number, ranges

SHOWN_SUSPECTS = 10
SHOWN_WARNINGS = 8

MEANINGS = {
    "suspect": "where a difference begins",
    "dtype": "other dtypes",
    "shape": "other shapes",
    "argument": "other arguments",
    "random": "random operations",
    "nonfinite": "NaN or infinities on one side",
    "propagated": "that an earlier difference explains",
    "drift": "of rounding that grew",
    "padding": "of another shape with the same content, the rest is padding",
    "requires_grad": "with another requires_grad",
    "recompute": "that recompute an earlier one",
    "replaced": "of another implementation with the same result",
    "only_in_bench": "only in the benchmark",
    "only_in_target": "only in the target",
}
"""Status -> what its calls are."""

AGREEMENTS = {
    "bits": "equal in every bit",
    "statistics": "of equal statistics",
    "nonfinite": "equal, and both hold NaN or infinities",
    "other_bits": "of equal numbers and other bits (-0.0, payloads of NaN, order)",
    "noise": "below the noise floor",
    "rounding": "within rounding or another order of sums",
    "padding": "equal but for padding",
}
"""How tensors agree -> what they are."""

BEGINNINGS = ("suspect", "dtype", "shape", "argument", "random", "nonfinite")


def compare_text(result: Mapping[str, Any], out: Path | None = None) -> str:
    """Return the answer; `out` is the folder of the full result."""
    lines = [headline(result), _read(result)]
    first = result["first_divergence"]
    if first:
        lines += ["", *_divergence(first)]
    lines += [""] * bool(result["findings"])
    for status, calls in statuses(result):
        lines.append(f"{calls:>8,}  {status}: calls {MEANINGS[status]}")
    others = [f for f in result["findings"] if f["status"] == "suspect" and not _is_first(f, first)]
    if others:
        lines += ["", "more places where a difference begins:"]
    lines += [f"  {place(f)}, {f['slot']}" for f in others[:SHOWN_SUSPECTS]]
    if len(others) > SHOWN_SUSPECTS:
        lines.append(f"  ... and {len(others) - SHOWN_SUSPECTS:,} more in result.json")
    lines += closing(result["warnings"], SHOWN_WARNINGS, out)
    return "\n".join(lines) + "\n"


def headline(result: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    first, read = result["first_divergence"], result["read"]
    if result["verdict"] == "unknown":
        return "Cannot tell: nothing in the two dumps could be held against each other."
    if not first:
        means = "checksums" if read["by_checksum"] == read["tensors"] else "rounding"
        return f"The same up to {means}: {count(read['pairs'], 'call')} agree."
    where = f" ({first['line'].partition(' | ')[0]})" if first["line"] else ""
    return f"The runs part at {place(first)}{where}: {first['reason']}."


def meaning(result: Mapping[str, Any]) -> str:
    """Return what the verdict does and does not say; nothing where the headline says it all."""
    read = result["read"]
    if result["verdict"] == "unknown":
        return "This is not the same as equal."
    if result["replicas"]:
        return (
            "Ranks of one run: only weights, which should be copies, are held against each other."
        )
    if result["verdict"] == "same" and not read["by_values"] and read["by_checksum"] == 0:
        return (
            "Held against each other by statistics alone (maximum, minimum, mean, norm): elements "
            "in another order would not be seen. Collect checksums or tensors to see them."
        )
    return ""


def agreements(result: Mapping[str, Any]) -> str:
    """Return how the tensors agree of which nothing is wrong; nothing where there are none."""
    counts = result["read"]["agreement"]
    parts = [f"{counts[key]:,} {words}" for key, words in AGREEMENTS.items() if counts[key]]
    return f"pairs of tensors that agree: {', '.join(parts)}" if parts else ""


def statuses(result: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return each status that occurs with its number of calls, the gravest first."""
    counts = result["statuses"]
    return [(status, counts[status]) for status in MEANINGS if counts.get(status)]


def place(finding: Mapping[str, Any]) -> str:
    """Return step, rank and call; both names where they differ."""
    call, bench = finding["call"], finding["bench_call"]
    names = call if call == bench or not bench else f"{call} ({bench} in the benchmark)"
    return f"step {finding['step']}, rank {finding['rank']}, {names or bench}"


def source_text(first: Mapping[str, Any]) -> str:
    """Return where the difference comes from, in words."""
    source = first["source"]
    call = f"{source['call']}, " if source["call"] and source["call"] != first["call"] else ""
    return f"{call}{source['why']}"


def metrics_text(metrics: Mapping[str, Any]) -> str:
    """Return the numbers of a finding on one line."""
    return ", ".join(
        f"{name} {value if isinstance(value, list) else number(value)}"
        for name, value in metrics.items()
    )


def _is_first(finding: Mapping[str, Any], first: Mapping[str, Any]) -> bool:
    return all(finding[key] == first[key] for key in ("step", "rank", "call", "bench_call"))


def _read(result: Mapping[str, Any]) -> str:
    read = result["read"]
    text = (
        f"{count(read['ranks'], 'rank')}, step {ranges(read['steps'], 6) or 'none'}: "
        f"{count(read['pairs'], 'pair')} of calls, {count(read['tensors'], 'pair')} of tensors; "
        f"{read['only_in_bench']:,} calls only in the benchmark, "
        f"{read['only_in_target']:,} only in the target"
    )
    return "\n".join(filter(None, (text, agreements(result), meaning(result))))


def _divergence(first: Mapping[str, Any]) -> list[str]:
    code = (first["line"] or "").partition(" | ")[2]
    lines = [f"  at      {place(first)}, {first['slot']}"]
    if first["line"]:
        lines.append(f"  line    {first['line'].partition(' | ')[0]}")
    if code:
        lines.append(f"          {code}")
    if first["metrics"]:
        lines.append(f"  numbers {metrics_text(first['metrics'])}")
    return [*lines, f"  source  {source_text(first)}", f"  next    {first['hint']}"]
