"""The answer in the terminal: first the answer, then what was read, then each origin."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .wording import count, ranges, ranks_text

SHOWN_ORIGINS = 10
SHOWN_RANKS = 8
SHOWN_NOTES = 8


def analyze_text(result: Mapping[str, Any], out: Path | None = None) -> str:
    """Return the answer of `analyze`; `out` is the folder of the full result."""
    lines = [headline(result), _read(result)]
    origins, benign, warnings = result["origins"], result["benign"], result["warnings"]
    for number, origin in enumerate(origins[:SHOWN_ORIGINS], 1):
        lines += ["", *_origin(result, number, origin)]
    if len(origins) > SHOWN_ORIGINS:
        lines += [
            "",
            f"... and {count(len(origins) - SHOWN_ORIGINS, 'more origin')} in result.json",
        ]
    if len(origins) > 1:
        lines += ["", "None of these origins leads to another; their order in time is not known."]
    lines += _notes(
        f"benign: step {b['step']}, rank {b['rank']}, {b['call']}: {b['reason']}" for b in benign
    )
    lines += _notes(f"warning: {w['code']}: {w['text']}" for w in warnings)
    if out:
        lines += ["", f"report: {out}/report.html"]
    return "\n".join(lines) + "\n"


def headline(result: Mapping[str, Any]) -> str:
    """Return the answer in one sentence."""
    origins, benign = result["origins"], len(result["benign"])
    if result["verdict"] == "unknown":
        return "Cannot tell: nothing on record says whether a tensor holds NaN or infinities."
    if not origins:
        rest = f"; {count(benign, 'place')} where one appears is benign" if benign == 1 else ""
        rest = f"; the {benign} places where one appears are benign" if benign > 1 else rest
        return f"No NaN or infinity that matters in what was read{rest}."
    first, others = origins[0], len(origins) - 1
    text = f"{' and '.join(first['values']) or 'A bad value'} {_birth(first)}"
    if first["source"]:
        text += f" ({first['source'].partition(' | ')[0]})"
    if first["reached"]:
        text += f" and reached {ranks_text(first['reached'], SHOWN_RANKS)}"
    return f"{text}; {count(others, 'more independent origin')}." if others else f"{text}."


def _birth(origin: Mapping[str, Any]) -> str:
    rank, step, call = origin["rank"], origin["step"], origin["call"]
    if origin["kind"] == "unrecorded":
        return f"came from rank {rank}, which left no record, in step {step}"
    if origin["kind"] in ("input", "parameter"):
        with_what = "a weight" if origin["kind"] == "parameter" else "the data"
        return f"came in with {with_what} on rank {rank} in step {step}, first read by {call}"
    return f"was born on rank {rank} in step {step} in {call}"


def tensor_text(tensor: Mapping[str, Any]) -> str:
    """Return one tensor: slot, dtype, shape, range of the finite elements, what else it holds."""
    shape = ", ".join(map(str, tensor["shape"] or []))
    text = f"{tensor['slot']} {tensor['dtype']}[{shape}]"
    if tensor["min"] is not None and tensor["max"] is not None:
        text += f" from {tensor['min']:.6g} to {tensor['max']:.6g}"
    if tensor["found"]:
        text += f", holds {' and '.join(tensor['found'])}"
    return text


def _read(result: Mapping[str, Any]) -> str:
    read = result["read"]
    missing = {w["rank"] for w in result["warnings"] if w["code"] == "rank_missing"}
    gap = f"; {ranks_text(missing, SHOWN_RANKS)} missing" if missing else ""
    steps = f"{'step' if len(read['steps']) == 1 else 'steps'} {ranges(read['steps'], 6)}"
    return (
        f"read {read['ranks']} of {read['expected']} ranks{gap}; {steps}: {read['calls']:,} calls, "
        f"{read['tensors']:,} tensors of {result['dump']}"
    )


def _origin(result: Mapping[str, Any], number: int, origin: Mapping[str, Any]) -> Iterable[str]:
    yield (
        f"{number}. rank {origin['rank']}, step {origin['step']}: {origin['call']}"
        f"   [{origin['kind']}, by {origin['certainty']}]"
    )
    if origin["module"]:
        yield f"   module   {origin['module']}"
    if origin["source"]:
        yield f"   source   {origin['source']}"
    yield f"   why      {origin['reason']}"
    for tensor in origin["tensors"][:6]:
        yield f"   value    {tensor_text(tensor)}"
    for rank in _arrivals(result, number - 1)[:SHOWN_RANKS]:
        yield f"   reached  {' -> '.join(map(_hop, rank['path']))}"
    if len(origin["reached"]) > SHOWN_RANKS:
        yield f"   reached  {ranks_text(origin['reached'])} in all"
    yield f"   hint     {origin['hint']}"
    yield f"   next     {next_command(result, origin)}"


def next_command(result: Mapping[str, Any], origin: Mapping[str, Any]) -> str:
    """Return a command that shows the calls around an origin."""
    if origin["seq"] is None:
        return f'crossrank query {shlex.quote(result["dump"])} "SELECT DISTINCT rank FROM calls"'
    where = (
        f"step = {origin['step']} AND rank = {origin['rank']} "
        f"AND seq BETWEEN {max(0, origin['seq'] - 5)} AND {origin['seq'] + 5}"
    )
    sql = (
        "SELECT seq, name, slot, dtype, min, max, has_nan FROM tensors JOIN calls "
        f"USING (step, rank, seq) WHERE {where} ORDER BY seq, slot"
    )
    return f'crossrank query {shlex.quote(result["dump"])} "{sql}"'


def _arrivals(result: Mapping[str, Any], origin: int) -> list[Mapping[str, Any]]:
    """Return the first symptoms on other ranks, the shortest way first."""
    home = result["origins"][origin]["rank"]
    away = [r for r in result["ranks"] if r["origin"] == origin and r["rank"] != home and r["path"]]
    return sorted(away, key=lambda r: (len(r["path"]), r["step"], r["rank"]))


def _hop(hop: Mapping[str, Any]) -> str:
    return f"rank {hop['rank']} {hop['call'] or '(no record)'}"


def _notes(texts: Iterable[str]) -> list[str]:
    notes = list(texts)
    more = len(notes) - SHOWN_NOTES
    rest = [f"... and {more} more in result.json"] if more > 0 else []
    return ["", *notes[:SHOWN_NOTES], *rest] if notes else []
