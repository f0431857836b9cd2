"""What differs between two checkpoints, and what only seems to?"""

from __future__ import annotations

from collections import Counter

from .base import Answers, Row

ORDER = (
    "different",
    "only_in_a",
    "only_in_b",
    "incomparable",
    "padding",
    "tied",
    "rounded",
    "opaque",
    "equal",
)
"""Statuses, those that matter most first."""

DIFFERENT = {"different", "only_in_a", "only_in_b"}

ROUNDINGS = (
    "a rounded to bfloat16",
    "a rounded to float16",
    "b rounded to bfloat16",
    "b rounded to float16",
)
"""What each bit of `roundings` says, the lowest first."""

DAMAGE = {"file_unreadable", "file_missing", "file_unsafe"}


def checkpoint_diff(db: Answers, *, every: bool = False) -> Row:
    """Return verdict, counts, findings and warnings of two checkpoints.

    Without a tensor that was compared the verdict is unknown. So it is when a file could not be
    read or is not safe, unless a difference was found in the others.

    Args:
        db: answers the questions under sql/checkpoint.
        every: list equal tensors too.
    """
    verdicts = db.rows("checkpoint/verdicts")
    hints = {row["pair"]: row["hint"] for row in db.rows("checkpoint/hints")}
    compared = [row for row in verdicts if row["kind"] in ("weight", "optimizer", "tied")]
    findings = [_finding(row, hints.get(row["pair"], "")) for row in compared]
    findings += [_unpaired(row) for row in db.rows("checkpoint/alone")]
    findings += [_opaque(row) for row in db.rows("checkpoint/opaque")]
    findings.sort(key=_importance)
    counts = Counter(finding["status"] for finding in findings)
    problems = db.rows("checkpoint/problems")
    warnings = [_problem(row) for row in problems] + _inside(verdicts) + _assumed(verdicts)
    same = sum(row["status"] not in ("different", "incomparable") for row in compared)
    damaged = any(problem["code"] in DAMAGE for problem in problems)
    if DIFFERENT & counts.keys():
        verdict = "different"
    else:
        verdict = "unknown" if damaged or not same or counts["incomparable"] else "same"
    return {
        "verdict": verdict,
        "counts": {status: counts[status] for status in ORDER if counts[status]},
        "findings": [f for f in findings if every or f["status"] != "equal"],
        "warnings": warnings,
    }


def _importance(finding: Row) -> tuple[int, bool, float]:
    """Return what findings are sorted by: status, weights before the optimizer, the worst first."""
    optimizer = finding["kind"] == "optimizer"
    return ORDER.index(finding["status"]), optimizer, -(finding.get("relative_l2") or 0)


def _finding(row: Row, hint: str) -> Row:
    status = row["status"]
    found = {
        "name": row["name"],
        "name_b": row["name_b"],
        "kind": row["kind"],
        "status": status,
        "shape": row["shape"],
        "dtype": [row["dtype_a"], row["dtype_b"]],
        "numel": row["numel"],
        "unequal": row["unequal"],
        "l2": row["l2"],
        "relative_l2": row["relative_l2"],
        "cos": row["cos"],
        "max_abs": row["max_abs"],
        "max_rel": row["max_rel"],
        "hint": "; ".join(filter(None, [hint, *_notes(row)])),
    }
    if row["first_place"] is not None:
        found["first_index"] = index_of(row["first_place"], row["shape"])
        found["last_index"] = index_of(row["last_place"], row["shape"])
    for key in ("nan_a", "nan_b", "inf_a", "inf_b"):
        if row[key]:
            found[key] = row[key]
    return found


def _notes(row: Row) -> list[str]:
    """Return what a reader should know of a pair, in words."""
    notes = [row["error"], row["note"], _status_note(row)]
    if row["status"] == "different" and len(row["shape"]) > 1:
        first, last = (index_of(row[key], row["shape"])[0] for key in ("first_place", "last_place"))
        if last - first + 1 < row["shape"][0] and row["beyond"] > 1:
            notes.append(f"only in rows {first} to {last}")
    if row["padding"]:
        notes.append(f"{row['padding']} rows of padding were not compared")
    if row["assumed_padding"]:
        first = row["shape"][0] - row["assumed_padding"]
        notes.append(
            f"only the last rows differ, from {first} on; they seem to be padding "
            f"(to be sure: --vocabulary {first})"
        )
    if row["nan_a"] or row["nan_b"]:
        notes.append(f"NaN: {row['nan_a']} in A, {row['nan_b']} in B")
    return [note for note in notes if note]


def _status_note(row: Row) -> str:
    """Return why a pair has its status, where that is not plain."""
    status, dtypes = row["status"], f"{row['dtype_a']} against {row['dtype_b']}"
    if status == "tied":
        return f"a copy of {row['name_b']}, which only one side stores"
    if row["kind"] == "tied":
        return f"no copy of {row['name_b']}"
    if status == "equal" and row["bits_differ"]:
        return "equal numbers, other bits: -0.0 and 0.0, or kinds of NaN"
    if status == "different" and row["dtype_a"] != row["dtype_b"]:
        return f"{dtypes}; {row['beyond']} elements differ beyond rounding"
    if status != "rounded":
        return ""
    if not row["unequal"]:
        return f"{dtypes}, equal values"
    if not row["beyond"]:
        return f"{dtypes}, equal after rounding"
    return next(text for bit, text in enumerate(ROUNDINGS) if row["roundings"] >> bit & 1)


def index_of(place: int, shape: list[int]) -> list[int]:
    """Return the index of a place in the flat tensor."""
    index: list[int] = []
    for extent in reversed(shape):
        place, rest = divmod(place, extent)
        index.append(rest)
    return index[::-1]


def _unpaired(row: Row) -> Row:
    return {
        "name": row["name"],
        "name_b": row["name_b"],
        "kind": row["kind"],
        "status": row["status"],
        "shape": [row["shape_a"], row["shape_b"]],
        "hint": row["hint"],
    }


def _opaque(row: Row) -> Row:
    return {
        "name": row["name"],
        "name_b": row["name"],
        "kind": row["kind"],
        "status": "opaque",
        "hint": row["hint"],
    }


def _problem(row: Row) -> Row:
    return {"code": row["code"], "side": row["side"], "text": row["text"]}


def _inside(verdicts: list[Row]) -> list[Row]:
    """Return what disagrees inside of one checkpoint."""
    found = []
    for row in verdicts:
        if row["status"] != "different" or row["kind"] not in ("replica", "master"):
            continue
        if row["kind"] == "replica":
            text = f"{row['name']}: the copy on {row['name_b']} is another"
            code = "replica_mismatch"
        else:
            text = f"{row['name']}: {row['name_b']} does not round to the weight"
            code = "master_mismatch"
        where = index_of(row["first_place"], row["shape"])
        text += f" ({row['unequal']} elements, the first at {where})"
        found.append({"code": code, "text": text})
    return found


def _assumed(verdicts: list[Row]) -> list[Row]:
    return [
        {
            "code": "padding_assumed",
            "text": f"{row['name']}: {row['assumed_padding']} rows at its end differ and count as "
            "padding of the vocabulary, whose size no file tells; to be sure: --vocabulary N",
        }
        for row in verdicts
        if row["assumed_padding"] and row["kind"] in ("weight", "tied")
    ]
