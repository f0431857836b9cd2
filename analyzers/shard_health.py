"""What of the dump was there to be read, and what was not?"""

from __future__ import annotations

from .base import Database, Row

RANK_QUESTIONS = ("health/shards", "comm/groups", "comm/operations")


def shard_health(db: Database) -> tuple[Row, list[Row]]:
    """Return what was read, and a warning for everything that was missing or did not fit.

    No warnings means: every rank that anything names is there, whole, and agrees with the others
    about every communication call.
    """
    shards = db.rows("health/shards")
    read = {
        "ranks": len({s["rank"] for s in shards if s["calls"]}),
        "expected": len(db.rows("health/expected_ranks")),
        "steps": sorted({s["step"] for s in shards}),
        "calls": sum(s["calls"] for s in shards),
        "tensors": sum(s["tensors"] for s in shards),
    }
    warnings = [_missing(row) for row in db.rows("health/missing_ranks")]
    warnings += [_damaged(shard) for shard in shards if not shard["complete"]]
    warnings += [_mismatch(row) for row in db.rows("health/collective_mismatch")]
    warnings += [_partner(row) for row in db.rows("health/partner_missing")]
    return read, warnings


def _missing(row: Row) -> Row:
    text = f"step {row['step']}: rank {row['rank']} left no record; its part was not seen"
    return {"code": "rank_missing", "step": row["step"], "rank": row["rank"], "text": text}


def _damaged(shard: Row) -> Row:
    used = f"{shard['calls']} calls of it are used"
    where = f"step {shard['step']}, rank {shard['rank']}"
    if shard["fault"]:
        code = "internal_error"
        text = (
            f"{where}: {shard['fault']}; this is a mistake of crossrank, not of the file "
            f"({shard['path']}): please report it"
        )
    elif shard["damage"]:
        code, text = "shard_unreadable", f"{where}: {shard['damage']} ({shard['path']}); {used}"
    else:
        why = shard["unfinished"] or "the process ended before the step did"
        code, text = "step_incomplete", f"{where}: {why} ({shard['path']}); {used}"
    return {"code": code, "step": shard["step"], "rank": shard["rank"], "text": text}


def _mismatch(row: Row) -> Row:
    sides = ", ".join(
        f"rank {rank} {call} {brought}"
        for rank, call, brought in zip(row["ranks"], row["calls"], row["brought"], strict=True)
    )
    text = f"step {row['step']}: the {row['what']} differs between the ranks of one call: {sides}"
    return {
        "code": "collective_mismatch",
        "step": row["step"],
        "rank": row["ranks"][0],
        "ranks": row["ranks"],
        "text": text,
    }


def _partner(row: Row) -> Row:
    text = (
        f"step {row['step']}: rank {row['rank']} has no call that goes with {row['by_call']} "
        f"of rank {row['by_rank']}; pairing goes on without it"
    )
    return {"code": "partner_missing", "step": row["step"], "rank": row["rank"], "text": text}
