"""Do two collections of RL data differ, in what, and why?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .base import Answers, Row
from .rl_causes import Event, as_events, log_prob_events
from .rl_notes import notes, plain_uid
from .rl_setting import JOINED, Setting
from .rl_words import CONFIRM, evidence

MOST_LISTED = 10_000
"""Samples that the result lists; lone_samples.parquet has all."""


def rl_diff(db: Answers, setting: Setting) -> Row:
    """Return verdict, what was read, numbers of each key, findings and warnings.

    Findings stand in causal order, the most likely cause first; what differs later may follow from
    it. No findings means: no more differs than rounding explains.
    """
    read = _read(db, setting)
    numbers = {row["key"]: row for row in db.rows("rl/key_numbers")}
    events = _ordered(_all_events(db, setting), setting)
    compared = read["matched"] or db.rows("rl/array_rows")
    changed = _config_changes(setting.configs)
    findings = [_finding(event, numbers, setting) for event in events]
    explained = {key for event in events for key in event.keys}
    if findings and changed:
        findings.append(_config_finding(changed, read["steps"]))
    return {
        "verdict": "different" if findings else "same" if compared else "unknown",
        "read": read,
        "keys": {key: _numbers(row) for key, row in numbers.items()},
        "findings": findings,
        "trend": db.rows("rl/trend"),
        "warnings": notes(db, setting, changed, explained, compared=bool(compared)),
    }


def _read(db: Answers, setting: Setting) -> Row:
    lone = db.rows("rl/lone_samples")
    missing = {
        s: [_sample(r) for r in lone if r["side"] == s and r["why"] == "missing"] for s in "ab"
    }
    (counts,) = db.rows("rl/counts")
    return {
        "mode": setting.mode,
        **counts,
        "matched_by": JOINED[setting.match],
        "only_in_a": missing["a"][:MOST_LISTED],
        "only_in_b": missing["b"][:MOST_LISTED],
        "only_in_a_count": len(missing["a"]),
        "only_in_b_count": len(missing["b"]),
        "log_probs": [list(names) for names in setting.log_probs],
        "noise_floor": 23 * setting.eps,
    }


def _sample(row: Row) -> Row:
    return {
        "step": row["step"],
        "rank": row["rank"],
        "uid": plain_uid(row["uid"]),
        "sample": row["sample"],
    }


def _numbers(row: Row) -> Row:
    place = {name: row[name] for name in ("step", "rank", "uid", "sample", "token")}
    place["uid"] = plain_uid(place["uid"])
    rest = {k: v for k, v in row.items() if k not in place and k != "key"}
    return {**rest, "max_at": place if row["n"] else None}


def _all_events(db: Answers, setting: Setting) -> list[Event]:
    rows = db.rows("rl/events")
    events = as_events(rows)
    groups = db.rows("rl/nan_advantages")
    for event in events:
        if event.cause == "nan" and event.keys == ["advantages"]:
            _explain_nan_advantages(event, groups)
        if event.cause == "nan":
            event.facts["loss"] = _reached(db, event.steps)
        if event.cause == "mask" and event.keys == ["response_mask"]:
            event.facts["shape"] = _mask_shape(db)
    events += log_prob_events(db, one_run=setting.one_run)
    events += _place_events(db)
    return events + _scalar_events(db, {event.steps[0] for event in events if event.stage < 80})


def _explain_nan_advantages(event: Event, groups: Sequence[Row]) -> None:
    if groups and all(g["equal_rewards"] or g["samples"] == 1 for g in groups):
        event.cause = "advantage_std0"
        event.facts["groups"] = len(groups)


def _mask_shape(db: Answers) -> str:
    """Return how the masks differ, where it is the same in all samples."""
    (row,) = db.rows("rl/mask_shapes")
    if row["shifted"] == row["samples"]:
        return f": b's mask is a's, moved by {row['shift']:+d}"
    for side in ("a", "b"):
        if row[f"{side}_counts_all"] == row["samples"]:
            return f": {side}'s mask counts every token that attention sees"
    return ""


def _reached(db: Answers, steps: Sequence[int]) -> str:
    """Return whether something not finite of some steps reached a loss; empty: none on record."""
    losses = [row for row in db.rows("rl/array_rows") if "loss" in row["key"]]
    if not losses:
        return ""
    bad = any(row["nan_1"] != row["nan_2"] and row["step"] in steps for row in losses)
    return "; it reached the loss" if bad else "; the loss stayed finite"


def _place_events(db: Answers) -> list[Event]:
    found: dict[tuple[str, str], Event] = {}
    for row in db.rows("rl/place_events"):
        facts = {name: row[name] for name in ("shape_1", "shape_2", "numbers", "max_abs", "dtypes")}
        event = found.setdefault(
            (row["cause"], row["key"]), Event(row["cause"], [row["key"]], 81, [], [], facts)
        )
        event.steps.append(row["step"])
        event.ranks = sorted({*event.ranks, *row["ranks"]})
    return list(found.values())


def _scalar_events(db: Answers, explained: set[int]) -> list[Event]:
    """Return events of losses, gradient norms and other single numbers."""
    weights = {row["step"]: row for row in db.rows("rl/loss_weights")}
    noise = max(
        (c["level"] for c in db.rows("rl/noise") if c["level"] and not c["loud"]), default=0
    )
    found: dict[tuple[str, str], Event] = {}
    for row in db.rows("rl/scalars"):
        if row["cause"] == "values" and abs(row["a"] - row["b"]) <= 2 * noise * row["size"]:
            continue  # what the noise of the log-probs does to a loss or a gradient
        cause, facts = row["cause"], {"a": row["a"], "b": row["b"]}
        before = min(explained, default=row["step"] + 1) <= row["step"]
        relation = "" if before or "loss" not in row["key"] else _relation(weights.get(row["step"]))
        if cause == "values" and relation:
            cause, facts = "loss_weighting", {"relation": relation}
        stage = 90 if "grad" in row["key"] else 80
        event = found.setdefault(
            (cause, row["key"]), Event(cause, [row["key"]], stage, [], [], facts)
        )
        event.steps = sorted({*event.steps, row["step"]})
        event.ranks = sorted({*event.ranks, *([] if row["rank"] is None else [row["rank"]])})
    return list(found.values())


def _relation(row: Row | None) -> str:
    """Return what is constant about the ratio of the losses; empty when nothing is."""
    if row is None or row["batches"] < 2:
        return ""
    if row["spread"] < 0.01:
        return f"b's is {row['ratio']:.4g} times a's"
    if row["batches"] >= 3 and row["spread_times"] is not None:
        if row["spread_times"] < 0.01:
            return "their ratio times the micro batch's tokens is the same"
        if row["spread_over"] < 0.01:
            return "their ratio over the micro batch's tokens is the same"
    return ""


def _ordered(events: Iterable[Event], setting: Setting) -> list[Event]:
    """Return events in causal order: of one run by stage, of two by step first."""
    if setting.one_run:
        return sorted(events, key=lambda e: (e.stage, e.steps[0], e.keys))
    return sorted(events, key=lambda e: (e.steps[0], e.stage, e.keys))


def _finding(event: Event, numbers: Mapping[str, Row], setting: Setting) -> Row:
    first = event.first
    key = event.keys[0]
    if first is None and key in numbers:
        first = {name: numbers[key][name] for name in ("step", "rank", "uid", "sample", "token")}
    if first:
        first = {**first, "uid": plain_uid(first["uid"])}
    return {
        "cause": event.cause,
        "keys": event.keys,
        "where": {"steps": sorted(set(event.steps)), "ranks": event.ranks},
        "sample": first,
        "evidence": _evidence(event, numbers, setting),
        "confirm": CONFIRM[event.cause],
    }


def _evidence(event: Event, numbers: Mapping[str, Row], setting: Setting) -> str:
    if event.cause == "nan" and "samples" not in event.facts:
        return _what(event, numbers)
    return evidence(event.cause, _facts(event, numbers, setting))


def _facts(event: Event, numbers: Mapping[str, Row], setting: Setting) -> Row:
    """Return what the words of a finding need."""
    facts = {"shape": "", "loss": "", **event.facts}
    a, b = setting.names
    if event.cause == "topk_renormalisation":
        facts["side"] = b if facts["down"] > facts["up"] else a
        facts["same_text"] = _renormalisation_text(facts)
    if event.cause == "temperature":
        facts["slope_text"] = _temperature_text(facts, a, b)
    if event.cause == "values":
        facts["what"] = _what(event, numbers)
    return facts


def _renormalisation_text(facts: Row) -> str:
    if facts.get("rest") is None:
        return f" (level {facts['level']:.3g}); no prefix led to several tokens, to see it by those"
    return (
        ", by the same amount for all tokens that one prefix led to "
        f"(rest {facts['rest']:.3g}, level {facts['level']:.3g})"
    )


def _temperature_text(facts: Row, a: str, b: str) -> str:
    if facts.get("slope") is None:
        return ""
    honest = a if abs(facts["ratio_b"] - 1) < abs(facts["ratio_a"] - 1) else b
    other = b if honest == a else a
    return (
        f": differences of {b}'s log-probs inside of a context are {facts['slope']:.3g} times "
        f"{a}'s, so T({a}) / T({b}) = {facts['slope']:.3g}; {honest} agrees better with what was "
        f"sampled, look at {other}"
    )


def _what(event: Event, numbers: Mapping[str, Row]) -> str:
    facts, key = event.facts, event.keys[0]
    if "level" in facts:
        return (
            f"{key} is further apart than rounding explains (level {facts['level']:.3g}), and no "
            "rule says why"
        )
    if "outliers" in facts:
        return f"{key} is far apart in {facts['outliers']} of {facts['contexts']} contexts"
    if "a" in facts:
        return f"{key} is {facts['a']:.6g} against {facts['b']:.6g}"
    if key in numbers and facts.get("samples"):
        return f"{key} differs in {facts['samples']} samples, by {facts['max_abs']:.6g} at most"
    if facts.get("samples"):
        return f"{key} differs in {facts['samples']} samples"
    size = f", by {facts['max_abs']:.6g} at most" if facts.get("max_abs") is not None else ""
    return f"{key} differs in {facts.get('numbers')} numbers{size}"


def _config_changes(configs: tuple[Mapping[str, Any], Mapping[str, Any]]) -> list[str]:
    """Return the settings that differ, where both sides saved any."""
    a, b = configs
    if not a or not b:
        return []
    missing = "(missing)"
    return [
        f"{key}: {a.get(key, missing)!s:.80} against {b.get(key, missing)!s:.80}"
        for key in sorted({*a, *b})
        if a.get(key, missing) != b.get(key, missing)
    ]


def _config_finding(changed: Sequence[str], steps: Sequence[int]) -> Row:
    return {
        "cause": "configuration",
        "keys": ["configurations.json"],
        "where": {"steps": list(steps), "ranks": []},
        "sample": None,
        "evidence": evidence("configuration", {"differences": "; ".join(changed)}),
        "confirm": CONFIRM["configuration"],
    }
