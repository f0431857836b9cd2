"""What explains that log-probabilities are further apart than rounding?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .base import Answers, Row

ENOUGH = 8
"""Tokens that a test needs."""
MOST_OUTLIERS = 0.05
"""Share of contexts that may stand out without a cause; a healthy top-k run had 1.6 %."""
MOST_OF_FEW = 0.5
"""The same where a handful of tokens is all there is."""


@dataclass
class Event:
    """Something in which the sides differ.

    Args:
        cause: one of the causes of CONTRACT section 2.
        keys: canonical names.
        stage: causal order inside of a step, see sql/rl/events.sql.
        steps: where it is seen.
        ranks: of A.
        facts: for the words.
        first: a sample that shows it: step, rank, uid, sample, token.
    """

    cause: str
    keys: list[str]
    stage: int
    steps: list[int]
    ranks: list[int]
    facts: Row = field(default_factory=dict)
    first: Row | None = None


def log_prob_events(db: Answers, *, one_run: bool) -> list[Event]:
    """Return an event for each log-prob key whose gap is no rounding, with the rule that fits.

    No event means: no key is louder than the noise floor, or too few tokens tell.
    """
    cells = db.rows("rl/noise")
    found = []
    for key in dict.fromkeys(cell["key"] for cell in cells):
        event = _event(db, key, cells, one_run=one_run)
        if event:
            found.append(event)
    return found


def _event(db: Answers, key: str, cells: Sequence[Row], *, one_run: bool) -> Event | None:
    own = [cell for cell in cells if cell["key"] == key]
    loud = [cell for cell in own if cell["loud"]]
    stage = 32 if key == "rollout_log_prob" else 60
    if not loud:
        cause, facts = _quiet_cause(db, key)
        if not cause:
            return None
        places = facts.pop("places")
        return _placed(Event(cause, [key], stage, [], [], facts), places)
    facts = {"level": max(cell["level"] for cell in loud), "quiet_level": _highest_quiet(own)}
    cause, more = _loud_cause(db, key, own, cells, one_run=one_run)
    event = Event(cause, [key], stage, [], [], facts | more)
    return _placed(event, [cell for cell in loud if not _before(more, cell)])


def _before(facts: Row, cell: Row) -> bool:
    return bool(cell["step"] < facts.get("from_step", cell["step"]))


def _placed(event: Event, cells: Iterable[Row]) -> Event:
    places = list(cells)
    event.steps = sorted({cell["step"] for cell in places})
    event.ranks = sorted({cell["rank"] for cell in places})
    return event


def _highest_quiet(cells: Iterable[Row]) -> float | None:
    return max((cell["level"] for cell in cells if cell["loud"] is False), default=None)


def _loud_cause(
    db: Answers, key: str, own: Sequence[Row], cells: Sequence[Row], *, one_run: bool
) -> tuple[str, Row]:
    """Return the first rule that fits, and what it saw; alignment before everything about size."""
    shift = _only_shift(db, key)
    if shift:
        return "logprob_alignment", shift
    signs, contexts = _of(db, "rl/gap_signs", key), _of(db, "rl/contexts", key)
    seen = {**signs, **contexts}
    if _is_renormalised(signs, contexts):
        return "topk_renormalisation", seen
    if _is_tempered(signs, contexts):
        return "temperature", seen
    stale = _stale(own)
    trainer_stays = not any(cell["loud"] for cell in cells if cell["key"] != key)
    if stale and (one_run or (key == "rollout_log_prob" and trainer_stays)):
        return "stale_rollout_weights", stale
    routed = _of(db, "rl/routing", key)
    if routed.get("tied"):
        return "moe_routing", routed | _flips(db)
    return "values", seen


def _quiet_cause(db: Answers, key: str) -> tuple[str, Row]:
    """Return what shows although the usual gap is rounding: routing, or outliers beyond number."""
    routed = _of(db, "rl/routing", key)
    if routed.get("tied"):
        flips = [row for row in db.rows("rl/flips") if row["flipped"]]
        return "moe_routing", routed | _flips(db) | {"places": flips}
    outliers = [row for row in db.rows("rl/outliers") if row["key"] == key]
    share = len(outliers) / outliers[0]["contexts"] if outliers else 0
    if (len(outliers) > ENOUGH and share > MOST_OUTLIERS) or share > MOST_OF_FEW:
        worst = max(outliers, key=lambda row: abs(row["gap"]))
        return "values", {"outliers": len(outliers), **worst, "places": outliers}
    return "", {}


def _flips(db: Answers) -> Row:
    rows = db.rows("rl/flips")
    return {"sets": sum(r["routed"] for r in rows), "flips": sum(r["flipped"] for r in rows)}


def _of(db: Answers, question: str, key: str) -> Row:
    return next((row for row in db.rows(question) if row["key"] == key), {})


def _only_shift(db: Answers, key: str) -> Row:
    """Return the shift, other than 0, that makes the gap quiet; nothing when there is none."""
    rows = [row for row in db.rows("rl/shifts") if row["key"] == key]
    here = next((row for row in rows if row["shift"] == 0), {"level": 0.0, "quiet": True})
    quiet = [row for row in rows if row["quiet"] and row["shift"]]
    if here["quiet"] or not quiet:
        return {}
    best = min(quiet, key=lambda row: row["level"])
    return {"shift": best["shift"], "shift_level": best["level"], "unshifted": here["level"]}


def _is_renormalised(signs: Row, contexts: Row) -> bool:
    """Tell whether one side is never lower, by the same for all tokens of a context."""
    if not signs or max(signs["up"], signs["down"]) < 0.9:
        return False
    if contexts.get("tokens", 0) >= ENOUGH:
        return bool(contexts["quiet"])
    steady = max(signs["up"], signs["down"]) >= 0.95 and (signs["unscaled"] or 0) > 0.25
    return bool(steady and signs["likely"] >= ENOUGH)


def _is_tempered(signs: Row, contexts: Row) -> bool:
    """Tell whether one power of the distribution explains the gap."""
    if contexts.get("tokens", 0) >= ENOUGH and contexts["unexplained"] is not None:
        return bool(abs(contexts["slope"] - 1) > 0.03 and contexts["unexplained"] < 0.25)
    if not signs or min(signs["unlikely"], signs["likely"]) < ENOUGH // 2:
        return False
    shares = sorted([signs["unlikely_up"], signs["likely_up"]])
    return bool(shares[0] <= 0.2 and shares[1] >= 0.8)


def _stale(cells: Sequence[Row]) -> Row:
    """Return from which step on ranks are loud that were quiet, or others are; else nothing."""
    told = [cell for cell in cells if cell["loud"] is not None]
    first = {}
    for rank in sorted({cell["rank"] for cell in told}):
        loud = [cell["step"] for cell in told if cell["rank"] == rank and cell["loud"]]
        if loud:
            first[rank] = min(loud)
    if not first or all(cell["loud"] for cell in told):
        return {}
    start = min(first.values())
    after = [c["loud"] for c in told if c["rank"] in first and c["step"] >= first[c["rank"]]]
    steady = sum(after) >= 0.6 * len(after)
    several = len(after) > len(first) or max(first.values()) == start
    return {"from_step": start, "stale_ranks": sorted(first)} if steady and several else {}


def as_events(rows: Iterable[Row]) -> list[Event]:
    """Return rows of rl/events as one event a cause and key, from its first step on."""
    found: dict[tuple[str, str], Event] = {}
    for row in rows:
        event = found.setdefault(
            (row["cause"], row["key"]),
            Event(row["cause"], [row["key"]], row["stage"], [], [], {"samples": 0, "numbers": 0}),
        )
        event.steps.append(row["step"])
        event.ranks = sorted({*event.ranks, *row["ranks"]})
        event.facts["samples"] += row["samples"]
        event.facts["numbers"] += row["numbers"] or 0
        event.facts["max_abs"] = max(event.facts.get("max_abs") or 0.0, row["max_abs"] or 0.0)
        if event.first is None:
            event.first = {name: row[name] for name in ("step", "rank", "uid", "sample", "token")}
    return list(found.values())
