"""The worst samples as rows of tokens, each as dark as its gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..render_rl import sample_text
from ..wording import number


def token_views(
    worst: Sequence[Mapping[str, Any]], tokens: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return what the template draws of each sample with tokens on record.

    Args:
        worst: rows of rl/worst_samples.
        tokens: rows of `shown_tokens`.
    """
    found: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for token in tokens:
        found.setdefault((token["key"], token["pair"]), []).append(token)
    views = []
    for row in worst:
        own = found.get((row["key"], row["pair"]))
        if own:
            own.sort(key=lambda token: (not token["in_prompt"], token["token"]))
            views.append(_view(row, own))
    return views


def _view(row: Mapping[str, Any], tokens: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "title": f"{row['key']}: {sample_text({**row, 'rank': row['a_rank'], 'token': None})}",
        "prompt": [str(token["id_a"]) for token in tokens if token["in_prompt"]],
        "tokens": [_token(token, row) for token in tokens if not token["in_prompt"]],
    }


def _token(token: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    a, b = token["log_prob_a"], token["log_prob_b"]
    gap = None if a is None or b is None else b - a
    counted = token["counted_a"] is not False and token["counted_b"] is not False
    known = counted and gap is not None and gap == gap
    other = token["id_a"] != token["id_b"] and None not in (token["id_a"], token["id_b"])
    ids = f"id {token['id_a']}" + (f" against {token['id_b']}" if other else "")
    tip = f"token {token['token']}, {ids}: {number(a)} against {number(b)}, gap {number(gap)}"
    share = min(1.0, abs(gap) / (row["max_abs"] or 1.0)) if known and gap is not None else None
    if not counted:
        tip += "; not counted on both sides"
    return {
        "text": str(token["id_a"] if token["id_a"] is not None else token["id_b"]),
        "percent": None if share is None else round(100 * share),
        "tip": tip,
        "other": other,
    }
