"""Where do two runs of one training part, and what followed from it?"""

from __future__ import annotations

from collections import Counter

from .base import Database, Row
from .causal_order import earliest
from .diff_words import hint_of, reason_of, source_of
from .nan_words import own_frame

RANK_QUESTIONS = (
    "diff/call_pairs",
    "diff/tensor_pairs",
    "diff/unpaired",
    "diff/findings",
    "diff/finding_stacks",
    "diff/summary",
    "diff/divergence_tensors",
    "diff/parts",
    "diff/module_errors",
    "diff/error_profile",
)
"""Asked where a pair of ranks lies; everything else is asked over the answers of all."""

ROOTS = ("suspect", "dtype", "shape", "argument", "random", "nonfinite")
"""Statuses of a call at which a difference begins."""

AGREEMENTS = ("bits", "statistics", "nonfinite", "other_bits", "noise", "rounding", "padding")
"""How two tensors agree of which nothing is wrong; diff/tensor_pairs says what each means."""

METRICS = ("max_rel", "max_error", "ratio", "cosine", "ulp", "thousandth", "first_index")

NOTHING_ELSE = dict.fromkeys(
    (*METRICS, "value", "bench_value", "source_name", "source_bench_name", "alike")
)
"""Columns of a finding that one made of shards does not have."""

NOT_MERGED = {
    "incomplete": "are split over the ranks of one dump in a way that does not add up to the whole "
    "in the other",
    "partial": "are sums of which each rank holds a term (DTensor's Partial), which statistics "
    "cannot add up",
    "numbers": "are split over ranks and have no statistics on record",
}
"""Why parts are not comparable -> what they are."""

MOST_FINDINGS = 1_000
"""Findings in the document, as in diff/told_findings; all stand in findings.parquet."""


def run_diff(db: Database, *, replicas: bool = False) -> Row:
    """Return verdict, what was read, the first divergence, findings and warnings.

    No first divergence means: what differs is less than rounding explains, or a note.

    Args:
        db: the answers of all pairs of ranks.
        replicas: both sides are ranks of one run, whose weights should be copies.
    """
    summary = db.rows("diff/summary")
    merged = db.rows("diff/merged_parts") if any(row["parts"] for row in summary) else []
    several = len({row["rank"] for row in summary}) > 1
    before = db.rows("diff/told_findings")
    if merged or not any(f["status"] in ROOTS for f in before):  # others of them may decide
        before = db.rows("diff/findings")
    findings = _with_merged(_settled(before, db.rows("diff/received") if several else []), merged)
    roots = [f for f in findings if f["status"] in ROOTS]
    first = _first(db, roots or [f for f in findings if f["status"] == "propagated"])
    judged = sum(row["judged"] for row in summary) + sum(m["comparable"] for m in merged)
    verdict = "different" if first else "same" if judged else "unknown"
    statuses = Counter({row["status"]: row["calls"] for row in db.rows("diff/statuses")})
    statuses.update(f["status"] for f in findings)
    statuses.subtract(f["status"] for f in before)
    told = [_finding(f) for f in findings[:MOST_FINDINGS]]
    told += [_unpaired(row) for row in db.rows("diff/told_unpaired")]
    warnings = _not_merged(merged)
    if statuses.total() > len(told):
        text = f"{statuses.total():,} findings; {len(told):,} are here, all in the tables"
        warnings.append({"code": "shortened", "step": None, "rank": None, "text": text})
    return {
        "verdict": verdict,
        "read": _read(summary, judged),
        "first_divergence": _divergence(db, first, replicas) if first else None,
        "statuses": +statuses,
        "findings": told,
        "warnings": warnings,
    }


def _settled(findings: list[Row], received: list[Row]) -> list[Row]:
    """Return the findings, with what came in by communication marked as propagated."""
    came_in = {(r["step"], r["rank"], r["seq"]) for r in received}
    return [
        f | {"status": "propagated"} if (f["step"], f["rank"], f["seq"]) in came_in else dict(f)
        for f in findings
    ]


def _with_merged(findings: list[Row], merged: list[Row]) -> list[Row]:
    """Return the findings and those of shards that, put together, differ from the whole.

    What reads something that differs after such a call, on whichever rank, is a consequence.
    """
    roots = [f for f in findings if f["status"] in ROOTS]
    known = {(f["step"], f["rank"], f["seq"]) for f in findings}
    first: dict[int, int] = {}  # step -> the earliest call that holds a shard that differs
    for row in merged:
        if row["comparable"] and (row["ratio"] > 1 or row["other_nonfinite"]):
            here = [r["seq"] for r in roots if r["step"] == row["step"]]
            later = min([*here, first.get(row["step"], row["seq"])]) < row["seq"]
            first[row["step"]] = min(first.get(row["step"], row["seq"]), row["seq"])
            if (row["step"], row["rank"], row["seq"]) not in known:
                begins = "nonfinite" if row["other_nonfinite"] else "suspect"
                status = "propagated" if later else begins
                findings.append({**NOTHING_ELSE, **row, "status": status})
    for f in findings:
        at = first.get(f["step"])
        later = at is not None and (f["seq"], not f["is_input"]) > (at, False)
        if later and f["status"] == "suspect" and not f["weight"]:
            f["status"] = "propagated"
    return sorted(findings, key=lambda f: (f["step"], f["rank"], f["seq"]))


def _not_merged(merged: list[Row]) -> list[Row]:
    """Return a warning for each reason why tensors in parts could not be compared."""
    warnings = []
    for why, words in NOT_MERGED.items():
        lost = [row for row in merged if row["why"] == why]
        if lost:
            text = (
                f"{len(lost):,} tensors {words}; the first is {lost[0]['slot']} of "
                f"{lost[0]['name']} (step {lost[0]['step']}, rank {lost[0]['rank']}): not compared"
            )
            warnings.append({"code": "not_compared", "step": None, "rank": None, "text": text})
    return warnings


def _first(db: Database, roots: list[Row]) -> Row | None:
    """Return the earliest root, in causal order across ranks."""
    if not roots:
        return None
    step = min(root["step"] for root in roots)
    by_rank: dict[int, Row] = {}
    for root in roots:
        if root["step"] == step:
            known = by_rank.setdefault(root["rank"], root)
            by_rank[root["rank"]] = min(known, root, key=lambda row: int(row["seq"]))
    if len(by_rank) == 1:
        return next(iter(by_rank.values()))
    return earliest(db.rows("diff/moments"), list(by_rank.values()))


def _read(summary: list[Row], judged: int) -> Row:
    totals = {
        key: sum(row[key] for row in summary)
        for key in ("pairs", "only_in_bench", "only_in_target")
    }
    return totals | {
        "ranks": len({row["rank"] for row in summary}),
        "steps": sorted({row["step"] for row in summary}),
        "tensors": judged,
        "by_checksum": sum(row["by_checksum"] for row in summary),
        "by_values": sum(row["by_values"] for row in summary),
        "agreement": {key: sum(row[key] for row in summary) for key in AGREEMENTS},
    }


def _divergence(db: Database, first: Row, replicas: bool) -> Row:
    def here(rows: list[Row]) -> list[Row]:
        return [r for r in rows if all(r[k] == first[k] for k in ("step", "rank", "seq"))]

    frames = [
        line for row in here(db.rows("diff/finding_stacks")) for line in row["stack"].split("\n")
    ]
    line = own_frame(frames)
    tensors = here(db.rows("diff/divergence_tensors"))
    return {
        **_finding(first),
        "seq": first["seq"],
        "phase": first["phase"],
        "reason": reason_of(first),
        "source": source_of(first),
        "line": line,
        "stack": [frame.partition(" | ")[0] for frame in frames],
        "hint": hint_of(first, replicas=replicas),
        "tensors": [
            {k: v for k, v in t.items() if k not in ("step", "rank", "seq")} for t in tensors
        ],
    }


def _finding(row: Row) -> Row:
    metrics = {key: row[key] for key in METRICS if row[key] is not None}
    return {
        "step": row["step"],
        "rank": row["rank"],
        "bench_rank": row["bench_rank"],
        "call": row["name"],
        "bench_call": row["bench_name"],
        "module": row["module"],
        "status": row["status"],
        "slot": row["slot"],
        "bench_slot": row["bench_slot"],
        "metrics": metrics,
        "tolerance": row["tolerance"],
    }


def _alone(row: Row) -> str:
    return "replaced" if row["replaced"] else f"only_in_{row['side']}"


def _unpaired(row: Row) -> Row:
    return {
        "step": row["step"],
        "rank": row["rank"],
        "call": row["name"] if row["side"] == "target" else None,
        "bench_call": row["name"] if row["side"] == "bench" else None,
        "module": row["module"],
        "status": _alone(row),
        "side": row["side"],
        "slot": None,
        "metrics": {},
        "tolerance": None,
    }
