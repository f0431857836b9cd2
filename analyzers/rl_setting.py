"""Who is compared with whom, joined by what, and which numbers are log-probabilities?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .base import Answers, Row

LogProb = tuple[str, str, str]
"""Name in the result, key of A, key of B."""

JOINED = {
    "ids": "(step, uid, sample_index)",
    "prompt": "(step, prompt ids, response or order)",
    "prompt_text": "(step, prompt text, response or order)",
    "place": "(step, rank, micro step, row)",
}
LOG_PROBS = ("rollout_log_prob", "log_prob", "old_log_prob", "ref_log_prob")
"""These stand before those that users named."""
ENGINE_KEYS, TRAINER_KEYS = ("log_prob", "rollout_log_prob"), ("log_prob", "old_log_prob")

ROUNDING = {
    "float8_e5m2": 2.0**-3,
    "float8_e4m3fn": 2.0**-4,
    "fp8": 2.0**-4,
    "bfloat16": 2.0**-8,
    "bf16": 2.0**-8,
}
"""Number format -> relative error of rounding to nearest; finer ones do not lower the floor."""


@dataclass(frozen=True)
class Setting:
    """How two collections are compared.

    Args:
        mode: engine (an engine's rollouts against the trainer's), runs, or keys (of one run).
        match: what samples are joined by, a key of JOINED.
        log_probs: name in the result, key of A, key of B.
        keys: groups of keys, for a task each where a step is large.
        eps: rounding of the coarsest number format on record.
        tokens: of A, that count.
        configs: of A and B.
        engine_is_a: whether A is the engine, in mode engine.
    """

    mode: str
    match: str
    log_probs: tuple[LogProb, ...]
    keys: tuple[frozenset[str], ...]
    eps: float
    tokens: int
    configs: tuple[Mapping[str, Any], Mapping[str, Any]]
    engine_is_a: bool = True

    @property
    def names(self) -> tuple[str, str]:
        """Return what the sides are called in words."""
        if self.mode == "keys" and self.log_probs:
            return self.log_probs[0][1], self.log_probs[0][2]
        if self.mode == "engine":
            return (
                ("the engine", "the trainer") if self.engine_is_a else ("the trainer", "the engine")
            )
        return "A", "B"

    @property
    def one_run(self) -> bool:
        """Tell whether both sides speak of the very same samples."""
        return self.mode != "runs"

    def token_share(self, most: int) -> float:
        """Return the share of samples whose tokens are at most `most` in all."""
        return min(1.0, most / max(1, self.tokens * len(self.log_probs)))


def choose_match(db: Answers, *, one_dump: bool) -> str:
    """Return what samples are joined by: ids, prompts where they have none, else places."""
    (known,) = db.rows("rl/identities")
    if one_dump:
        return "place"
    if known["by_ids"]:
        return "ids"
    if known["same_prompt"] and not known["other_prompt"]:
        return "place"
    if known["by_prompt"]:
        return "prompt"
    return "prompt_text" if known["by_text"] else "place"


def choose_setting(
    db: Answers,
    match: str,
    pair: tuple[str, str] | None,
    configs: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> Setting:
    """Return how to compare; a side without what only a trainer makes is the engine."""
    rows = db.rows("rl/side_keys")
    a, b = ({row["key"] for row in rows if row[side]} for side in ("in_a", "in_b"))
    trainers = [any(row[s] and row["of_trainer"] for row in rows) for s in ("in_a", "in_b")]
    mode = "keys" if pair else "engine" if trainers[0] != trainers[1] else "runs"
    log_probs: tuple[LogProb, ...] = (("log_prob", *pair),) if pair else ()
    if mode == "engine":
        log_probs = _engine_against_trainer(a, b, trainer_is_b=trainers[1])
    if mode != "keys":
        named = [key for key in _log_probs(rows) if key in a & b]
        taken = {key for names in log_probs for key in names}
        log_probs += tuple((key, key, key) for key in named if key not in taken)
    (known,) = db.rows("rl/identities")
    shared = sorted(a & b | {key for _, *keys in log_probs for key in keys})
    grouped = [frozenset(keys) for _, *keys in log_probs]
    rest = [frozenset({key}) for key in shared if not any(key in group for group in grouped)]
    return Setting(
        mode=mode,
        match=match,
        log_probs=log_probs,
        keys=(*grouped, *rest),
        eps=_eps(configs),
        tokens=known["tokens"],
        configs=configs,
        engine_is_a=trainers[1],
    )


def _log_probs(rows: Sequence[Row]) -> list[str]:
    """Return the keys that are called log-probs, those of crossrank first."""
    named = [row["key"] for row in rows if row["log_prob"]]
    return sorted(named, key=lambda key: (*LOG_PROBS, key).index(key))


def _engine_against_trainer(a: set[str], b: set[str], *, trainer_is_b: bool) -> tuple[LogProb, ...]:
    engine, trainer = (a, b) if trainer_is_b else (b, a)
    own = next((key for key in ENGINE_KEYS if key in engine), None)
    other = next((key for key in TRAINER_KEYS if key in trainer), None)
    if own is None or other is None:
        return ()
    return (("log_prob", own, other) if trainer_is_b else ("log_prob", other, own),)


def _eps(configs: Sequence[Mapping[str, Any]]) -> float:
    """Return the rounding of the coarsest format named; bfloat16 where none is."""
    named = [str(v) for config in configs for k, v in config.items() if "dtype" in k]
    return max([ROUNDING.get(name.removeprefix("torch."), 0.0) for name in named] + [2.0**-8])
