"""The answer of `rl` in the terminal: first the answer, then what was read, then each finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .wording import closing, count, number, ranges, ranks_text

SHOWN_FINDINGS, SHOWN_NOTES = 8, 8


def rl_text(result: Mapping[str, Any], out: Path | None = None) -> str:
    """Return the answer of `rl`; `out` is the folder of the full result."""
    lines = [headline(result), read_line(result), ""]
    lines += [_key_line(key, row) for key, row in result["keys"].items() if row["n"]]
    for place, finding in enumerate(result["findings"][:SHOWN_FINDINGS], 1):
        lines += ["", *_finding(place, finding)]
    more = len(result["findings"]) - SHOWN_FINDINGS
    if more > 0:
        lines += ["", f"... and {count(more, 'more finding')} in result.json"]
    lines += closing(result["warnings"], SHOWN_NOTES, out)
    return "\n".join(lines) + "\n"


def headline(result: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    if result["verdict"] == "unknown":
        return "Cannot tell: nothing on one side has a partner on the other."
    if result["verdict"] == "same":
        return "No more differs than rounding explains."
    first, others = result["findings"][0], len(result["findings"]) - 1
    rest = f"; {count(others, 'more finding')}, which may follow from it" if others else ""
    return f"{first['cause']} in {', '.join(first['keys'])}, {where(first)}{rest}."


def where(finding: Mapping[str, Any]) -> str:
    """Return steps and ranks of a finding."""
    steps, ranks = finding["where"]["steps"], finding["where"]["ranks"]
    text = f"step{'' if len(steps) == 1 else 's'} {ranges(steps)}"
    return f"{text}, {ranks_text(ranks)}" if ranks else text


def read_line(result: Mapping[str, Any]) -> str:
    """Return what was compared with what."""
    read = result["read"]
    lone = read["only_in_a_count"] + read["only_in_b_count"]
    rest = f", {count(lone, 'sample')} without a partner" if lone else ""
    what = {"engine": "an engine against its trainer", "keys": "two keys of one run"}
    return (
        f"joined {count(read['matched'], 'sample')} by {read['matched_by']}{rest}; "
        f"{what.get(read['mode'], 'run against run')}, steps {ranges(read['steps'])}"
    )


def _key_line(key: str, row: Mapping[str, Any]) -> str:
    text = (
        f"{key:20} n {row['n']:<9} mean {number(row['mean']):12} mean abs "
        f"{number(row['mean_abs']):12} max {number(row['max_abs'])}"
    )
    if row["k3"] is not None:
        text += f"  k3 {number(row['k3'])}  clipped {100 * row['clip_share']:.1f} %"
    return text


def _finding(place: int, finding: Mapping[str, Any]) -> Iterable[str]:
    yield f"{place}. {finding['cause']}: {', '.join(finding['keys'])}   [{where(finding)}]"
    yield f"   why      {finding['evidence']}"
    if finding["sample"]:
        yield f"   sample   {sample_text(finding['sample'])}"
    yield f"   confirm  {finding['confirm']}"


def sample_text(sample: Mapping[str, Any]) -> str:
    """Return where a sample stands."""
    names = {"uid": "uid", "sample": "sample", "token": "token"}
    rest = [f"{text} {sample[n]}" for n, text in names.items() if sample.get(n) is not None]
    return f"step {sample['step']}, rank {sample['rank']}" + "".join(f", {one}" for one in rest)
