"""What looks odd in RL data and is no difference, and what could not be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from .base import Answers, Row
from .rl_setting import Setting

TEXTS = {
    "nonfinite_masked": (
        "{key} of side {side}: {numbers} numbers are not finite where nothing counts, in "
        "{samples} samples"
    ),
    "nonfinite": "{key}: {numbers} numbers that count are not finite, on both sides alike",
    "length_mismatch": (
        "{key} of side {side} has another length than the token ids in {samples} samples "
        "({numbers} numbers); these samples of it were not compared"
    ),
    "text_differs": "{key} is another text in {samples} samples; whether it may be is not known",
    "layout": (
        "the prompts of {samples} samples are padded otherwise, and attention fits on both sides"
    ),
}
SHOWN = 20


def notes(
    db: Answers,
    setting: Setting,
    changed: Sequence[str],
    explained: Collection[str],
    *,
    compared: bool,
) -> list[Row]:
    """Return a warning for everything that was seen and is no finding.

    Args:
        db: answers the questions.
        setting: how the sides were compared.
        changed: settings that differ.
        explained: keys with a finding; their outliers are part of it.
        compared: whether anything was.
    """
    found = [_note(row) for row in db.rows("rl/notes")]
    found += _lone(db.rows("rl/lone_samples"))
    found += _outliers([row for row in db.rows("rl/outliers") if row["key"] not in explained])
    found += _too_few(db, explained, 23 * setting.eps)
    if setting.mode == "runs":
        found += _lone_keys(db.rows("rl/side_keys"))
    if setting.mode != "keys" and compared:
        found += _uncompared(db.rows("rl/uncompared"))
    if changed and not explained:
        found.append(
            {"code": "configuration", "text": f"configurations differ: {'; '.join(changed)}"}
        )
    if not compared:
        text = "no sample and no value of one side has a partner on the other: nothing was compared"
        found.append({"code": "nothing_compared", "text": text})
    return [{"step": None, "rank": None, **note} for note in found]


def plain_uid(uid: str | None) -> Any:
    """Return an id as an integer where it is one."""
    return int(uid) if uid is not None and uid.removeprefix("-").isdecimal() else uid


def _note(row: Row) -> Row:
    place = {name: row[name] for name in ("step", "rank", "sample")}
    return {
        "code": row["code"],
        **place,
        "uid": plain_uid(row["uid"]),
        "text": TEXTS[row["code"]].format_map(row),
    }


def _lone(rows: Sequence[Row]) -> Iterable[Row]:
    padding = [row for row in rows if row["why"] == "padding"]
    for row in padding[:SHOWN]:
        text = f"step {row['step']}: no token of this sample of side {row['side']} counts; left out"
        yield _place("padding_row", row, text)
    if len(padding) > SHOWN:
        text = (
            f"{len(padding) - SHOWN} more empty samples of {len(padding)}; see lone_samples.parquet"
        )
        yield {"code": "padding_row", "text": text}
    for side in ("a", "b"):
        steps = sorted({r["step"] for r in rows if r["side"] == side and r["why"] == "step"})
        if steps:
            text = f"steps {steps} are there on side {side} alone; they were not compared"
            yield {"code": "step_missing", "step": steps[0], "text": text}


def _outliers(rows: Sequence[Row]) -> Iterable[Row]:
    for row in rows[:SHOWN]:
        text = (
            f"{row['key']}: {row['gap']:+.3g} at token {row['token']}, far from the rest, in one "
            f"of {row['contexts']} contexts"
        )
        yield {**_place("outlier", row, text), "pair": row["pair"], "token": row["token"]}
    if len(rows) > SHOWN:
        yield {"code": "outlier", "text": f"{len(rows) - SHOWN} more; see outliers.parquet"}


def _too_few(db: Answers, explained: Collection[str], floor: float) -> Iterable[Row]:
    told = {cell["key"] for cell in db.rows("rl/noise") if cell["loud"] is not None}
    for row in db.rows("rl/key_numbers"):
        judged = row["k3"] is None or row["key"] in {*told, *explained}
        if not judged and (row["max_abs"] or 0) > floor:
            text = (
                f"{row['key']}: {row['n']} tokens, up to {row['max_abs']:.3g} apart, are too few "
                "to tell rounding from a fault"
            )
            yield {"code": "few_tokens", "key": row["key"], "text": text}


def _lone_keys(rows: Iterable[Row]) -> Iterable[Row]:
    for row in rows:
        if row["in_a"] != row["in_b"]:
            side = "a" if row["in_a"] else "b"
            text = f"{row['key']} is there on side {side} alone; it was not compared"
            yield {"code": "key_missing", "key": row["key"], "side": side, "text": text}


def _uncompared(rows: Iterable[Row]) -> Iterable[Row]:
    for row in rows:
        why = (
            "text on one side and numbers on the other"
            if row["mixed"]
            else "for each sample on one side alone, or at other places"
        )
        text = f"{row['key']} is {why}; it was not compared"
        yield {"code": "not_comparable", "key": row["key"], "text": text}


def _place(code: str, row: Row, text: str) -> Row:
    place = {name: row.get(name) for name in ("side", "step", "rank", "sample")}
    return {"code": code, **place, "uid": plain_uid(row.get("uid")), "text": text}
