"""Where was each NaN and infinity born, and by which way did every rank get it?"""

from __future__ import annotations

from collections import defaultdict

from .base import Database, Row
from .nan_words import hint_of, own_frame, reason_of

RANK_QUESTIONS = (
    "comm/groups",
    "comm/operations",
    "nan/entries",
    "nan/exits",
    "nan/saturations",
    "nan/weight_updates",
)
"""Asked where a rank's shards lie; everything else is asked over the answers of all ranks."""


def nan_origin(db: Database) -> Row:
    """Return origins, ranks, benign values and warnings of the result document.

    No origins means: every NaN and infinity on record died out or was asked for.
    """
    origins = db.rows("nan/origins") + [_unrecorded(r) for r in db.rows("nan/unrecorded_origins")]
    spread = db.rows("nan/spread")
    consequences = db.rows("nan/consequences")
    born = [(o["step"], o["rank"], o["seq"]) for o in origins if o["seq"] is not None]
    evidence = {(r["step"], r["rank"], r["seq"]): r for r in db.look("nan/evidence", born)}
    recorded = {(s["step"], s["rank"]) for s in db.rows("health/shards") if s["calls"]}
    reached = _reached(spread, consequences, recorded)
    return {
        "origins": [
            _origin(o, evidence.get((o["step"], o["rank"], o["seq"])), reached[o["origin"]])
            for o in origins
        ],
        "ranks": _ranks(db, origins, spread, consequences),
        "benign": [
            {"step": b["step"], "rank": b["rank"], "call": b["name"], "reason": b["reason"]}
            for b in db.rows("nan/benign")
        ],
        "warnings": [_not_covered(c) for c in consequences if c["unseen"]],
    }


def _unrecorded(row: Row) -> Row:
    return row | {
        "seq": None,
        "kind": "unrecorded",
        "entry": "unrecorded",
        "certainty": "order",
        "slots": [],
        "members": [],
    }


def _reached(
    spread: list[Row], consequences: list[Row], recorded: set[tuple[int, int]]
) -> dict[int, set[int]]:
    """Return the ranks on record that hold a value of each origin."""
    reached: dict[int, set[int]] = defaultdict(set)
    for row in spread:
        if (row["step"], row["rank"]) in recorded and row["hops"]:
            reached[row["origin"]].add(row["rank"])
    for row in consequences:
        reached[row["origin"]].add(row["rank"])
    return reached


def _origin(origin: Row, evidence: Row | None, reached: set[int]) -> Row:
    evidence = evidence or {}
    frames = (evidence.get("stack") or "").splitlines()
    finding = {
        "step": origin["step"],
        "rank": origin["rank"],
        "call": origin["name"],
        "seq": origin["seq"],
        "kind": origin["kind"],
        "values": origin["found"],
        "slots": origin["slots"],
        "module": evidence.get("module"),
        "stack": [frame.partition(" | ")[0] for frame in frames],
        "source": own_frame(frames),
        "reason": reason_of(origin),
        "hint": hint_of(origin, evidence),
        "certainty": origin["certainty"],
        "reached": sorted(reached - {origin["rank"]}),
        "tensors": evidence.get("tensors") or [],
    }
    if origin["kind"] == "communication":
        finding["members"] = [{"rank": m["rank"], "call": m["call"]} for m in origin["members"]]
    return finding


def _ranks(
    db: Database, origins: list[Row], spread: list[Row], consequences: list[Row]
) -> list[Row]:
    """Return each rank's first symptom by step, and the way it came by."""
    arrivals: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in spread:
        arrivals[row["step"], row["rank"]].append(row)
    spoilt = {(c["step"], c["rank"]): c for c in consequences}
    ranks = []
    for symptom in db.rows("nan/symptoms"):
        key = (symptom["step"], symptom["rank"])
        origin, path = None, []
        if key in spoilt:
            origin = spoilt[key]["origin"]
            born = origins[origin]
            path = [
                {"rank": born["rank"], "call": born["name"], "step": born["step"]},
                {"rank": key[1], "call": symptom["name"], "step": key[0]},
            ]
        elif arrivals[key]:
            first = min(arrivals[key], key=lambda a: (a["ready"], a["hops"], a["origin"]))
            origin, path = first["origin"], first["path"]
        ranks.append(
            {
                "step": key[0],
                "rank": key[1],
                "first_symptom": {"call": symptom["name"], "seq": symptom["seq"]},
                "origin": origin,
                "path": path,
            }
        )
    return ranks


def _not_covered(row: Row) -> Row:
    text = (
        f"step {row['step']}: rank {row['rank']} began with bad weights, and nothing on record "
        "carried the bad value there: a gradient reduction that is not recorded must have "
        "(DistributedDataParallel reduces inside of C++)"
    )
    return {"code": "not_covered", "step": row["step"], "rank": row["rank"], "text": text}
