"""Public bug reports on RL data as small inputs, with the right answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from .conftest import causes


def batch(**values: Any) -> dict[str, Any]:
    """Return one sample; lists become [1, n]."""
    found = {"uid": np.array([7]), "sample_index": np.array([0])}
    for key, value in values.items():
        found[key] = np.array([value]) if key != "response_text" else [value]
    return found


def one(judge, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return judge({(0, 0, 0): a}, {(0, 0, 0): b})


def lp(*numbers: float) -> np.ndarray:
    return np.array(numbers, "f4")


ACTOR, ENGINE = lp(-0.1, -0.2, -9.0, -0.3, 777), lp(-0.1, -0.25, 0, -0.3, 0)
MASK = np.array([1, 1, 0, 1, 0])
IDS = np.array([5, 6, 7, 8, 0])


def masked(values: np.ndarray) -> dict[str, Any]:
    return batch(response_ids=IDS, response_mask=MASK, log_prob=values)


def test_the_mask_counts_not_attention(judge) -> None:
    result = one(judge, masked(ENGINE), masked(ACTOR) | {"advantages": np.array([0.5])})
    numbers = result["keys"]["log_prob"]
    assert (numbers["n"], numbers["max_at"]["token"]) == (3, 1)
    assert numbers["mean_abs"] == pytest.approx(0.016667, abs=1e-6)
    assert numbers["max_abs"] == pytest.approx(0.05, abs=1e-6)


def test_padding_rows_are_listed_and_change_nothing(judge) -> None:
    def padded(values: np.ndarray, **more: Any) -> dict[str, Any]:
        found = {k: np.concatenate([v, np.repeat(v, 5, axis=0)]) for k, v in masked(values).items()}
        found["response_mask"][1:] = 0
        found["sample_index"] = np.arange(6)
        return found | more

    result = one(judge, padded(ENGINE), padded(ACTOR, advantages=np.zeros(6)))
    numbers = result["keys"]["log_prob"]
    assert (numbers["n"], result["read"]["matched"]) == (3, 1)
    assert numbers["mean_abs"] == pytest.approx(0.016667, abs=1e-6)
    padding = [w for w in result["warnings"] if w["code"] == "padding_row"]
    assert {(w["side"], w["sample"]) for w in padding} == {
        (s, n) for s in "ab" for n in range(1, 6)
    }


def test_one_valid_token_has_no_correlation(judge) -> None:
    a, b = masked(ENGINE), masked(ACTOR)
    for side in (a, b):
        side["response_mask"] = np.array([[1, 0, 0, 0, 0]])
    numbers = one(judge, a, b)["keys"]["log_prob"]
    assert (numbers["n"], numbers["pearson"]) == (1, None)


def test_nothing_after_the_first_token_that_differs_is_compared(judge, stores) -> None:
    a = batch(response_ids=[5, 6, 7, 8], log_prob=lp(-1, -1, -1, -1))
    b = batch(response_ids=[5, 6, 9, 8, 1], log_prob=lp(-1, -1, -5, -5, -5))
    result = one(judge, a, b)
    assert (result["keys"]["log_prob"]["n"], result["keys"]["log_prob"]["max_abs"]) == (2, 0)
    assert result["findings"][0]["sample"]["token"] == 2
    (row,) = stores[-1].rows("rl/worst_samples")
    assert (row["tokens_a"], row["tokens_b"], row["first_difference"]) == (4, 5, 2)


def test_same_text_other_ids(judge) -> None:
    a = batch(response_ids=[30, 31], log_prob=lp(-1, -2), response_text="hello")
    b = batch(response_ids=[40], log_prob=lp(-9), response_text="hello")
    result = one(judge, a, b)
    assert causes(result) == ["retokenised"]
    assert result["keys"]["log_prob"]["n"] == 0


def test_log_probs_of_another_length_are_told_of_not_filled(judge) -> None:
    a = {**batch(), "response_ids": [np.array([5, 6, 7])], "log_prob": [lp(-1, -2, -3)]}
    b = {**batch(), "response_ids": [np.array([5, 6, 7])], "log_prob": [lp(-1, -2)]}
    result = one(judge, a, b)
    assert result["keys"]["log_prob"]["n"] == 0
    assert [w["code"] for w in result["warnings"]] == ["length_mismatch"]


def test_temperature_of_logits(judge) -> None:
    """Logits [2, 1, 0] at T = 0.5 against the raw log-probs of T = 1."""
    logits = np.array([2.0, 1.0, 0.0])

    def at(temperature: float) -> np.ndarray:
        scaled = logits / temperature
        return (scaled - math.log(np.exp(scaled).sum()))[[0, 1, 2, 0]].astype("f4")

    assert at(0.5)[0] == pytest.approx(-0.1429, abs=1e-4)
    assert at(1.0)[0] == pytest.approx(-0.4076, abs=1e-4)

    def side(temperature: float, **more: Any) -> dict[str, Any]:
        shared = {"uid": np.repeat([1, 2, 3, 4], 4), "sample_index": np.tile(np.arange(4), 4)}
        shared["prompt_ids"] = np.repeat([[9], [8], [7], [6]], 4, axis=0)
        shared["response_ids"] = np.tile([[10], [11], [12], [10]], (4, 1))
        return {**shared, "log_prob": np.tile(at(temperature)[:, None], (4, 1)), **more}

    result = one(judge, side(1.0), side(0.5, advantages=np.zeros(16)))
    assert causes(result) == ["temperature"]
    assert "T(the engine) / T(the trainer) = 2" in result["findings"][0]["evidence"]


def test_matching_across_nodes(judge) -> None:
    rng = np.random.default_rng(0)
    rows = [(uid, sample) for uid in range(4) for sample in range(4)]
    prompts = {uid: [5 + uid % 2, 9] for uid in range(4)}  # two prompts, each under two uids
    values = {row: rng.normal(-1, 0.3, 3).astype("f4") for row in rows}

    def side(order: np.ndarray) -> dict[tuple[int, int, int], dict[str, Any]]:
        found = {}
        for rank in (0, 1):
            some = [rows[n] for n in order[rank * 8 : rank * 8 + 8]]
            found[0, rank, 0] = {
                "uid": np.array([uid for uid, _ in some]),
                "sample_index": np.array([sample for _, sample in some]),
                "prompt_ids": np.array([prompts[uid] for uid, _ in some]),
                "response_ids": np.tile([4, 5, 6], (8, 1)),
                "old_log_prob": np.stack([values[row] for row in some]),
            }
        return found

    result = judge(side(np.arange(16)), side(rng.permutation(16)))
    assert (result["verdict"], result["read"]["matched"]) == ("same", 16)
    assert result["keys"]["old_log_prob"]["max_abs"] == 0


def test_tails_not_the_mean(judge) -> None:
    a = batch(response_ids=[4, 5, 6, 7], log_prob=lp(-1, -1, -1, -1))
    numbers = one(judge, a, a | {"log_prob": lp(-0.6, -1.4, -1, -1)[None]})["keys"]["log_prob"]
    assert numbers["mean"] == pytest.approx(0, abs=1e-7)
    assert numbers["mean_abs"] == pytest.approx(0.2)
    assert numbers["max_abs"] == pytest.approx(0.4)
    assert numbers["clip_share"] == 0.5


def test_a_group_of_one(judge) -> None:
    a = batch(response_ids=[4], reward=1.0) | {"advantages": np.array([0.0])}
    assert causes(one(judge, a, a | {"advantages": np.array([np.nan])})) == ["advantage_std0"]
    assert one(judge, a, a)["verdict"] == "same"


def test_weights_that_were_not_synchronised(judge) -> None:
    """lr = 0: the trainer's own log-probs stay, the engine's jump at step 2."""

    def side(gaps: list[float]) -> dict[tuple[int, int, int], dict[str, Any]]:
        own = np.tile(lp(-0.8, -1.2, -1.6, -2.0, -0.9, -1.1, -1.4, -2.4, -3.0), (2, 1))
        signs = np.tile([1, -1, 1, -1, 1, -1, 1, -1, 1], (2, 1))
        return {
            (step, 0, 0): {
                "uid": np.array([step, step]),
                "sample_index": np.array([0, 1]),
                "response_ids": np.arange(18).reshape(2, 9) + 18 * step,
                "rollout_log_prob": (own - abs(gap) * (signs > 0) - gap * (signs < 0)).astype("f4"),
                "old_log_prob": own,
            }
            for step, gap in enumerate(gaps)
        }

    result = judge(side([0.0175, 0.0175, 66.5, 66.5]), side([0, 0, 0, 0]))
    (finding,) = result["findings"]
    assert (finding["cause"], finding["keys"]) == ("stale_rollout_weights", ["rollout_log_prob"])
    assert finding["where"]["steps"] == [2, 3]


def test_an_empty_response_on_one_side(judge) -> None:
    a = {**batch(), "response_ids": [np.array([], "i8")], "log_prob": [lp()]}
    b = {**batch(), "response_ids": [np.arange(17)], "log_prob": [np.full(17, -1, "f4")]}
    result = one(judge, a, b)
    assert causes(result) == ["longer_response"]
    assert "17 tokens go on" in result["findings"][0]["evidence"]
