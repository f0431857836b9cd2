"""Whatever is planted into one key of one side is told of: nothing that differs passes for same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from ...rollouts import save, save_npy

SAMPLES, PROMPT, WIDTH = 8, 6, 32
Values = dict[str, Any]


def batch() -> Values:
    """Return one batch with keys of every kind, known and not."""
    rng = np.random.default_rng(0)
    size = SAMPLES, WIDTH
    real = np.arange(WIDTH) < rng.integers(10, WIDTH + 1, SAMPLES)[:, None]
    prompts = rng.integers(2, 900, (SAMPLES, PROMPT))
    ids = np.where(real, rng.integers(2, 900, size), 0)
    log_prob = np.where(real, -rng.exponential(0.6, size), 0).astype("f4")
    attention = np.concatenate([np.ones((SAMPLES, PROMPT), int), real], axis=1)
    return {
        "prompt_ids": prompts,
        "response_ids": ids,
        "response_mask": real,
        "attention_mask": attention,
        "input_ids": np.concatenate([prompts, ids], axis=1),
        "position_ids": np.where(attention, attention.cumsum(1) - 1, 0),
        "old_log_prob": log_prob,
        "teacher_logps": log_prob.copy(),
        "logp_scale": -log_prob,
        "sequence_log_prob": log_prob.sum(1),
        "advantages": np.where(real, rng.normal(size=(SAMPLES, 1)), 0).astype("f4"),
        "reward": rng.normal(size=SAMPLES).astype("f4"),
        "turns": rng.integers(400, 600, SAMPLES),
        "truncated": np.zeros(SAMPLES, bool),
        "hidden": rng.normal(size=(SAMPLES, 4, 5)).astype("f4"),
        "features": rng.normal(size=(SAMPLES, 5)).astype("f4"),
        "expert_bias": rng.normal(size=7).astype("f4"),
        "expert_counts": np.arange(300, 307),
        "loss": np.array(0.731, "f4"),
        "trained_tokens": np.array(1000),
    }


def plus(key: str, place: Any, number: float) -> Callable[[Values], None]:
    def change(values: Values) -> None:
        values[key][place] = values[key][place] + number

    return change


def times(key: str, factor: float) -> Callable[[Values], None]:
    def change(values: Values) -> None:
        values[key] = (values[key] * factor).astype(values[key].dtype)

    return change


def cut(key: str, *place: Any) -> Callable[[Values], None]:
    def change(values: Values) -> None:
        values[key] = values[key][place]

    return change


ALL = slice(None)
PLANTED: Mapping[str, tuple[Callable[[Values], None], set[tuple[str, str]]]] = {
    "an attention": (plus("attention_mask", (3, 1), -1), {("mask", "attention_mask")}),
    "an input id": (plus("input_ids", (2, 3), 1), {("values", "input_ids")}),
    "a position": (plus("position_ids", (3, 4), 1), {("values", "position_ids")}),
    "all positions": (plus("position_ids", ALL, 1), {("values", "position_ids")}),
    "log-probs": (times("old_log_prob", 1.3), {("values", "old_log_prob")}),
    "log-probs of a user": (times("teacher_logps", 1.3), {("values", "teacher_logps")}),
    "one called so": (times("logp_scale", 1.3), {("values", "logp_scale")}),
    "one a sample": (times("sequence_log_prob", 1.1), {("values", "sequence_log_prob")}),
    "an advantage": (plus("advantages", (2, 3), 1), {("values", "advantages")}),
    "its shape": (cut("advantages", ALL, 0), {("shape", "advantages")}),
    "a reward": (plus("reward", 2, 1), {("reward", "reward")}),
    "a count": (plus("turns", 2, 1), {("values", "turns")}),
    "a flag": (plus("truncated", 1, True), {("values", "truncated")}),
    "a hidden state": (plus("hidden", (1, 2, 3), 1), {("values", "hidden")}),
    "fewer features": (cut("features", ALL, slice(3)), {("shape", "features")}),
    "fewer layers": (cut("hidden", ALL, slice(3)), {("shape", "hidden")}),
    "a bias": (plus("expert_bias", 2, 1), {("values", "expert_bias")}),
    "a count of no sample": (plus("expert_counts", 3, 1), {("values", "expert_counts")}),
    "fewer experts": (cut("expert_bias", slice(5)), {("shape", "expert_bias")}),
    "a loss": (plus("loss", (), 0.2), {("values", "loss")}),
    "a number of tokens": (plus("trained_tokens", (), 1), {("values", "trained_tokens")}),
    "NaN": (plus("hidden", (1, 2, 3), np.nan), {("nan", "hidden")}),
    "nothing": (lambda values: None, set()),
    "noise": (times("teacher_logps", 1.001), set()),
    "rounding": (times("features", 1.001), set()),
    "an advantage that no mask counts": (plus("advantages", (4, WIDTH - 1), 9), set()),
    "a position in the padding": (plus("position_ids", (4, PROMPT + WIDTH - 1), 5), set()),
}


@pytest.fixture(params=[save, save_npy], ids=["shards", "npy"])
def findings(request, compare, tmp_path):
    def found(a: Values, b: Values) -> set[tuple[str, str]]:
        sides = (request.param({(0, 0, 0): v}, tmp_path / n) for n, v in (("a", a), ("b", b)))
        result = compare(*sides)
        assert (result["verdict"] == "same") == (not result["findings"])
        return {(finding["cause"], finding["keys"][0]) for finding in result["findings"]}

    return found


@pytest.mark.parametrize(("change", "answer"), PLANTED.values(), ids=PLANTED)
def test_what_was_planted_is_found_and_nothing_else(findings, change, answer) -> None:
    assert not batch()["response_mask"][4, -1]
    changed = batch()
    change(changed)
    assert findings(batch(), changed) == answer


def test_the_sides_may_change_places(findings) -> None:
    for change, answer in PLANTED.values():
        changed = batch()
        change(changed)
        if all(cause != "shape" for cause, _ in answer):
            assert findings(changed, batch()) == answer


def test_more_padding_is_no_difference(findings) -> None:
    wider = {
        key: np.pad(value, ((0, 0), (0, 3)))
        if value.ndim == 2 and value.shape[1] in (WIDTH, PROMPT + WIDTH)
        else value
        for key, value in batch().items()
    }
    wider["teacher_logps"] = wider["teacher_logps"] * np.float32(0.99)
    assert findings(batch(), wider) == set()


@pytest.mark.parametrize("keys", [["old_log_prob"], ["old_log_prob", "response_mask"]])
def test_log_probs_without_ids_are_judged(findings, keys) -> None:
    plain = {key: batch()[key] for key in keys}
    changed = plain | {"old_log_prob": plain["old_log_prob"] * np.float32(1.3)}
    near = plain | {"old_log_prob": plain["old_log_prob"] * np.float32(1.001)}
    assert findings(plain, changed) == {("values", "old_log_prob")}
    assert findings(plain, near) == set()


@pytest.mark.parametrize(
    "keys", [["returns", "reward"], ["attention_mask", "prompt_ids", "input_ids", "old_log_prob"]]
)
def test_where_nothing_tells_which_tokens_are_there(findings, keys) -> None:
    plain = batch() | {"returns": batch()["advantages"]}
    plain = {key: plain[key] for key in keys}
    assert findings(plain, plain) == set()
    changed = plain | {keys[0]: 1 - plain[keys[0]]}
    cause = "mask" if keys[0] == "attention_mask" else "values"
    assert findings(plain, changed) == {(cause, keys[0])}


def test_another_text_is_told_of(judge) -> None:
    answers = [f"answer {n}" for n in range(SAMPLES)]
    a, b = ({(0, 0, 0): batch() | {"answers": t}} for t in (answers, ["other", *answers[1:]]))
    result = judge(a, b)
    (warning,) = result["warnings"]
    assert (result["verdict"], warning["code"]) == ("same", "text_differs")
    assert "answers is another text in 1 samples" in warning["text"]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (["good"] * SAMPLES, "text on one side and numbers on the other"),
        (np.array(0.5, "f4"), "for each sample on one side alone, or at other places"),
    ],
    ids=["text", "one number"],
)
def test_what_cannot_be_compared_is_told_of(judge, other, why: str) -> None:
    a, b = {(0, 0, 0): batch()}, {(0, 0, 0): batch() | {"reward": other}}
    for sides in ((a, b), (b, a)):
        (warning,) = judge(*sides)["warnings"]
        assert (warning["code"], warning["key"]) == ("not_comparable", "reward")
        assert why in warning["text"]


def test_shards_beside_folders_of_msprobe(compare, tmp_path) -> None:
    shards, npy = (s({(0, 0, 0): batch()}, tmp_path / s.__name__) for s in (save, save_npy))
    for sides in ((shards, npy), (npy, shards)):
        result = compare(*sides)
        assert (result["verdict"], result["warnings"]) == ("same", [])


@pytest.mark.parametrize(
    ("gap", "verdict", "codes"),
    [
        (0.5, "different", []),
        (0.12, "same", ["few_tokens"]),
        (0.001, "same", []),
    ],
)
def test_a_handful_of_tokens(judge, gap: float, verdict: str, codes: list[str]) -> None:
    tokens = {"response_ids": np.array([[5, 6, 7]]), "log_prob": np.full((1, 3), -1.2, "f4")}
    other = tokens | {"log_prob": tokens["log_prob"] - np.float32(gap)}
    result = judge({(0, 0, 0): tokens}, {(0, 0, 0): other})
    assert result["verdict"] == verdict
    assert [w["code"] for w in result["warnings"] if w["code"] != "outlier"] == codes


def test_a_batch_of_openrlhf(judge) -> None:
    """Field names and shapes of `Experience`, 0.11.2: tokens and masks [B, T - 1], one in front."""

    def experience(values: Values) -> Values:
        mask = np.concatenate([np.zeros((SAMPLES, PROMPT - 1), bool), values["response_mask"]], 1)
        log_prob = np.zeros(mask.shape, "f4")
        log_prob[:, PROMPT - 1 :] = values["old_log_prob"]
        return {
            "sequences": values["input_ids"],
            "attention_mask": values["attention_mask"],
            "action_mask": mask,
            "action_log_probs": log_prob,
            "base_action_log_probs": log_prob.copy(),
            "rewards": values["reward"],
        }

    plain = experience(batch())
    other = plain | {"action_log_probs": plain["action_log_probs"] * np.float32(1.3)}
    result = judge({(0, 0, 0): plain}, {(0, 0, 0): other})
    assert [(f["cause"], f["keys"]) for f in result["findings"]] == [("values", ["old_log_prob"])]
    assert result["keys"]["old_log_prob"]["n"] == batch()["response_mask"].sum()

    moved = plain | {"sequences": plain["sequences"].copy()}
    moved["sequences"][2, PROMPT + 3] += 1
    found = judge({(0, 0, 0): plain}, {(0, 0, 0): moved})["findings"]
    assert [f["keys"] for f in found] == [["response_ids"]]
    assert found[0]["sample"]["token"] == PROMPT - 1 + 3


def test_keys_one_by_one_give_the_same(compare, tmp_path, monkeypatch) -> None:
    changed = batch()
    for change, _ in (PLANTED["an input id"], PLANTED["a count"], PLANTED["fewer layers"]):
        change(changed)
    a, b = save({(0, 0, 0): batch()}, tmp_path / "a"), save({(0, 0, 0): changed}, tmp_path / "b")
    whole = compare(a, b)
    monkeypatch.setattr("pipeline.rl_analysis.STEP_BYTES", 0)
    assert compare(a, b) == whole
    assert len(whole["findings"]) == 3


def some(values: Values, rows: Any) -> Values:
    """Return some of the samples, and what belongs to none."""
    return {k: v[rows] if v.shape[:1] == (SAMPLES,) else v for k, v in values.items()}


def test_dimensions_that_change_between_micro_steps(judge) -> None:
    whole = batch() | {"uid": np.arange(SAMPLES), "sample_index": np.zeros(SAMPLES, int)}
    halves = [some(whole, slice(0, 4)), some(whole, slice(4, None))]
    halves[1]["hidden"] = halves[1]["hidden"][..., 0]
    result = judge({(0, 0, 0): whole}, {(0, 0, n): half for n, half in enumerate(halves)})
    assert [(w["code"], w["key"]) for w in result["warnings"]] == [("not_comparable", "hidden")]
    assert (result["verdict"], result["read"]["matched"]) == ("same", SAMPLES)


@pytest.mark.parametrize(
    "odd",
    [
        {"response_ids": batch()["response_ids"][:-1]},
        {"response_mask": batch()["response_mask"][:, :, None, None]},
        {"prompt_ids": batch()["prompt_ids"][:0]},
        {"old_log_prob": batch()["old_log_prob"].reshape(-1)},
    ],
    ids=["fewer rows", "dimensions of a mask", "no rows", "no dimensions"],
)
def test_a_key_of_an_odd_shape_on_both_sides(judge, odd: Values) -> None:
    for keys in (set(batch()), {"response_ids", "response_mask", "old_log_prob", *odd}):
        values = {key: value for key, value in (batch() | odd).items() if key in keys}
        result = judge({(0, 0, 0): values}, {(0, 0, 0): values})
        assert (result["verdict"], result["read"]["matched"]) == ("same", SAMPLES)
