"""RL data for tests: a language model of hashed logits, an engine that rounds, and planted faults.

    run = Rollouts()                      2 steps, 2 ranks, 2 prompts of 4 samples each
    save(run.engine(), folder)            what the engine knows
    save(run.trainer(), folder)           what the trainer knows

Both return (step, rank, micro) -> key -> array, which a test may change before it is saved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from collectors.layout import shard_dir
from collectors.parts import write_rollouts

VOCABULARY, PAD, END, WIDTH, LONGEST = 40, 0, 1, 7, 12
TEMPERATURE = 0.7

Place = tuple[int, int, int]
Batches = dict[Place, dict[str, Any]]


def logits(context: tuple[int, ...], version: int = 0) -> np.ndarray:
    """Return logits that depend on the whole context; later weights differ."""
    seed = hashlib.blake2b(repr(context).encode(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    base = rng.normal(0, 1.6, VOCABULARY)
    base[PAD] = -30.0
    return base + 0.25 * version * rng.normal(0, 1, VOCABULARY)


def rounded(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as bfloat16 holds them: rounded to nearest."""
    bits = numbers.astype("<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype("<u4").view("<f4")


def log_softmax(numbers: np.ndarray) -> np.ndarray:
    shifted = numbers - numbers.max()
    return shifted - np.log(np.exp(shifted).sum())


@dataclass
class Rollouts:
    """One run.

    Args:
        steps, ranks, prompts, samples: its size; a prompt is a micro step.
        seed: of what is drawn.
        top_k: of the engine; 0: all tokens.
        lags: (step, rank) -> how many versions the engine's weights are behind.
    """

    steps: int = 2
    ranks: int = 2
    prompts: int = 2
    samples: int = 4
    seed: int = 0
    top_k: int = 0
    lags: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def places(self) -> list[Place]:
        size = (self.steps, self.ranks, self.prompts)
        return [tuple(map(int, place)) for place in np.ndindex(*size)]

    def engine(self, temperature: float = TEMPERATURE) -> Batches:
        """Return the engine's side; it reports log-probs at `temperature`, in bfloat16."""
        return {
            place: {**self._shared(place), "log_prob": self._log_probs(place, temperature, True)}
            for place in self.places()
        }

    def trainer(self, temperature: float = TEMPERATURE, top_k: int | None = None) -> Batches:
        """Return the trainer's side, in float32."""
        found = {}
        for place in self.places():
            shared = self._shared(place)
            own = self._log_probs(place, temperature, False, top_k)
            reward = shared["reward"]
            advantages = (reward - reward.mean()) / (reward.std(ddof=1) + 1e-4)
            tokens = shared["response_mask"].sum()
            loss = -(advantages[:, None] * shared["response_mask"] * (1 + own / 50)).sum() / tokens
            found[place] = {
                **shared,
                "log_prob": own,
                "old_log_prob": own,
                "rollout_log_prob": self._log_probs(place, TEMPERATURE, True),
                "advantages": advantages.astype("f4"),
                "loss": np.float32(loss),
            }
        return found

    def _prompt(self, place: Place) -> list[int]:
        step, rank, micro = place
        rng = np.random.default_rng([self.seed, step, rank, micro])
        return rng.integers(2, VOCABULARY, rng.integers(3, WIDTH)).tolist()

    def _drawn(self, place: Place) -> list[list[int]]:
        rng = np.random.default_rng([self.seed + 1, *place])
        version = place[0] - self.lags.get(place[:2], 0)
        responses = []
        for _ in range(self.samples):
            ids: list[int] = []
            while len(ids) < LONGEST and END not in ids:
                p = self._distribution(place, ids, TEMPERATURE, version, True, self.top_k)
                ids.append(int(rng.choice(VOCABULARY, p=np.exp(p) / np.exp(p).sum())))
            responses.append(ids)
        return responses

    def _distribution(
        self, place: Place, ids: list[int], temperature: float, version: int, engine: bool, k: int
    ) -> np.ndarray:
        numbers = logits((*self._prompt(place), -1, *ids), version)
        numbers = rounded(numbers).astype("f8") if engine else numbers
        if k:
            numbers = np.where(numbers < np.sort(numbers)[-k], -np.inf, numbers)
        return log_softmax(numbers / temperature)

    def _log_probs(
        self, place: Place, temperature: float, engine: bool, top_k: int | None = None
    ) -> np.ndarray:
        version = place[0] - (self.lags.get(place[:2], 0) if engine else 0)
        k = self.top_k if top_k is None else top_k
        found = np.zeros((self.samples, LONGEST), "f4")
        for row, ids in enumerate(self._drawn(place)):
            for token, one in enumerate(ids):
                given = self._distribution(place, ids[:token], temperature, version, engine, k)
                found[row, token] = given[one]
        return rounded(found) if engine else found

    def _shared(self, place: Place) -> dict[str, Any]:
        prompt, drawn = self._prompt(place), self._drawn(place)
        responses = np.zeros((self.samples, LONGEST), "i8")
        mask = np.zeros((self.samples, LONGEST), "i8")
        for row, ids in enumerate(drawn):
            responses[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        prompts = np.tile([PAD] * (WIDTH - len(prompt)) + prompt, (self.samples, 1))
        return {
            "uid": np.full(self.samples, place[0] * 100 + place[1] * 10 + place[2]),
            "sample_index": np.arange(self.samples),
            "prompt_ids": prompts,
            "response_ids": responses,
            "response_mask": mask,
            "attention_mask": np.concatenate([(prompts != PAD).astype("i8"), mask], axis=1),
            "reward": np.array([sum(ids) % 7 / 7 for ids in drawn], "f4"),
        }


def save(batches: Batches, dump: Path, dtypes: Mapping[str, str] | None = None) -> Path:
    """Write shards; arrays, texts and ragged lists of numbers; return the dump."""
    rows: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for (step, rank, micro), values in batches.items():
        for key, value in values.items():
            row = {"micro_step": micro, "key": key, **_row(value)}
            row["dtype"] = (dtypes or {}).get(key, row["dtype"])
            rows.setdefault((step, rank), []).append(row)
    for (step, rank), some in rows.items():
        folder = shard_dir(dump, step, rank)
        folder.mkdir(parents=True, exist_ok=True)
        write_rollouts(
            folder / "rollout-test-00000.parquet", some, {"crossrank.format": "crossrank"}
        )
    return dump


def save_npy(batches: Batches, dump: Path) -> Path:
    """Write the folders of SingleSave; everything is float32 there."""
    for (step, rank, micro), values in batches.items():
        for key, value in values.items():
            folder = dump / f"data/{key}/step{step}/rank{rank}/micro_step{micro}"
            folder.mkdir(parents=True, exist_ok=True)
            np.save(folder / f"{key}.npy", np.asarray(value, "f4"))
    return dump


def _row(value: Any) -> dict[str, Any]:
    if isinstance(value, list) and isinstance(value[0], str):
        return {"dtype": "text", "shape": [len(value)], "texts": value}
    if isinstance(value, list):
        flat = np.concatenate([np.asarray(row) for row in value])
        lengths = [len(row) for row in value]
        return {"dtype": str(flat.dtype), "lengths": lengths, "data": flat.tobytes()}
    array = np.asarray(value)
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": array.tobytes()}
