"""Planted faults, each beside the near miss that must stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ...rollouts import LONGEST, PAD, WIDTH, Batches, Rollouts
from .conftest import causes

RUN = Rollouts()


def edited(batches: Batches, change: Callable[[Any, dict[str, Any]], None]) -> Batches:
    for place, values in batches.items():
        change(place, values)
    return batches


def rolled(key: str, by: int) -> Callable[[Any, dict[str, Any]], None]:
    def change(_, values):
        values[key] = np.roll(values[key], by, axis=1)

    return change


def test_a_healthy_run(judge) -> None:
    result = judge(RUN.engine(), RUN.trainer())
    assert (result["verdict"], result["findings"], result["read"]["matched"]) == ("same", [], 32)
    assert result["keys"]["log_prob"]["mean_abs"] > 0


@pytest.mark.parametrize("engine", [0.7, 1.0, 0.49])
def test_temperature(judge, engine: float) -> None:
    trainer = 1.0 if engine == 0.7 else 0.7
    (finding,) = judge(RUN.engine(engine), RUN.trainer(trainer))["findings"]
    assert (finding["cause"], finding["where"]) == (
        "temperature",
        {"steps": [0, 1], "ranks": [0, 1]},
    )
    slope = float(finding["evidence"].split("T(the trainer) = ")[1].split(";")[0])
    assert slope == pytest.approx(engine / trainer, rel=0.02)
    assert ("look at the trainer" in finding["evidence"]) == (engine == 0.7)


def test_temperature_without_repeated_prompts(judge) -> None:
    run = Rollouts(ranks=4, prompts=8, samples=1)
    assert causes(judge(run.engine(), run.trainer(1.0))) == ["temperature"]
    assert judge(run.engine(), run.trainer())["verdict"] == "same"


@pytest.mark.parametrize(("of_trainer", "found"), [(None, []), (0, ["topk_renormalisation"])])
def test_top_k(judge, of_trainer: int | None, found: list[str]) -> None:
    run = Rollouts(top_k=5)
    result = judge(run.engine(), run.trainer(top_k=of_trainer))
    assert causes(result) == found
    if found:
        assert result["findings"][0]["evidence"].startswith("the trainer is lower")


@pytest.mark.parametrize("by", [-2, -1, 1, 2])
def test_log_probs_shifted(judge, by: int) -> None:
    (finding,) = judge(RUN.engine(), edited(RUN.trainer(), rolled("log_prob", by)))["findings"]
    assert (finding["cause"], finding["evidence"].split()[1]) == ("logprob_alignment", f"{by:+d}")


def test_mask_shifted(judge) -> None:
    (finding,) = judge(RUN.engine(), edited(RUN.trainer(), rolled("response_mask", 1)))["findings"]
    assert (finding["cause"], finding["keys"]) == ("mask", ["response_mask"])
    assert "moved by +1" in finding["evidence"]


def from_tools(_, values) -> None:
    values["response_mask"][:, 2:4] = 0


def test_mask_taken_from_attention(judge) -> None:
    (finding,) = judge(edited(RUN.engine(), from_tools), RUN.trainer())["findings"]
    assert finding["cause"] == "mask"
    assert "b's mask counts every token that attention sees" in finding["evidence"]


def test_tool_tokens_left_out_on_both_sides(judge) -> None:
    result = judge(edited(RUN.engine(), from_tools), edited(RUN.trainer(), from_tools))
    assert result["verdict"] == "same"


def padded_right(_, values) -> None:
    real = (values["prompt_ids"] != PAD).sum(axis=1)
    rows = zip(values["prompt_ids"], real, strict=True)
    values["prompt_ids"] = np.stack([np.roll(row, count) for row, count in rows])


def padded_right_with_attention(place, values) -> None:
    padded_right(place, values)
    values["attention_mask"][:, :WIDTH] = values["prompt_ids"] != PAD


def test_padding_on_the_other_side(judge) -> None:
    result = judge(RUN.engine(), edited(RUN.trainer(), padded_right))
    assert causes(result)[0] == "padding_side"


def test_padding_on_the_other_side_with_its_attention(judge) -> None:
    result = judge(RUN.engine(), edited(RUN.trainer(), padded_right_with_attention))
    assert (result["verdict"], [w["code"] for w in result["warnings"]]) == ("same", ["layout"])


@pytest.mark.parametrize("ranks", [(0, 1), (1,)])
def test_stale_weights(judge, ranks: tuple[int, ...]) -> None:
    run = Rollouts(steps=5, lags={(step, rank): step - 2 for step in (3, 4) for rank in ranks})
    (finding,) = judge(run.engine(), run.trainer())["findings"]
    assert finding["cause"] == "stale_rollout_weights"
    assert finding["where"] == {"steps": [3, 4], "ranks": list(ranks)}


def test_weights_that_differ_from_the_start_have_no_rule(judge) -> None:
    run = Rollouts(lags={(step, rank): 3 for step in range(2) for rank in range(2)})
    assert causes(judge(run.engine(), run.trainer())) == ["values"]


@pytest.mark.parametrize("loss", [np.nan, None])
def test_nan_that_counts(judge, loss: float | None) -> None:
    def change(place, values):
        if place == (1, 1, 0):
            values["old_log_prob"] = values["old_log_prob"].copy()
            values["old_log_prob"][2, 0] = np.nan
            values["loss"] = np.float32(loss) if loss else values["loss"]

    first = judge(RUN.trainer(), edited(RUN.trainer(), change))["findings"][0]
    assert (first["cause"], first["sample"]["uid"], first["sample"]["sample"]) == ("nan", 110, 2)
    assert first["evidence"].endswith("it reached the loss" if loss else "the loss stayed finite")


def longer(_, values) -> None:
    for row, count in enumerate(values["response_mask"].sum(axis=1)):
        if count < LONGEST - 2:
            values["response_ids"][row, count : count + 2] = 5
            values["response_mask"][row, count : count + 2] = 1
            values["attention_mask"][row, WIDTH + count : WIDTH + count + 2] = 1


def test_a_longer_response(judge) -> None:
    assert causes(judge(RUN.trainer(), edited(RUN.trainer(), longer))) == ["longer_response"]
    assert causes(judge(RUN.engine(), edited(RUN.trainer(), longer))) == ["longer_response"]


def test_tokenised_again(judge) -> None:
    def change(place, values):
        if place == (0, 0, 1):
            values["response_ids"][1, 0] = 3 + values["response_ids"][1, 0] % 30

    assert causes(judge(RUN.engine(), edited(RUN.trainer(), change))) == ["retokenised"]


def test_other_rewards(judge) -> None:
    def change(_, values):
        values["reward"] = values["reward"] + np.float32(0.1) * (np.arange(4) == 1)
        values["advantages"] = values["advantages"] * np.float32(1.1)

    assert causes(judge(RUN.trainer(), edited(RUN.trainer(), change))) == ["reward", "values"]


def equal_rewards(advantage: float) -> Callable[[Any, dict[str, Any]], None]:
    def change(place, values):
        if place[1] == 0:
            values["reward"] = np.full(4, 0.5, "f4")
            values["advantages"] = np.full(4, advantage, "f4")

    return change


def test_equal_rewards(judge) -> None:
    healthy = edited(RUN.trainer(), equal_rewards(0.0))
    result = judge(healthy, edited(RUN.trainer(), equal_rewards(np.nan)))
    assert causes(result)[0] == "advantage_std0"
    assert judge(healthy, healthy)["verdict"] == "same"


@pytest.mark.parametrize("tokens", [True, False], ids=["by tokens", "a constant factor"])
def test_weights_of_the_loss(judge, tokens: bool) -> None:
    def change(_, values):
        factor = values["response_mask"].sum() / 30 if tokens else 4
        values["loss"] = np.float32(values["loss"] * factor)

    (finding,) = judge(RUN.trainer(), edited(RUN.trainer(), change))["findings"]
    assert (finding["cause"], finding["keys"]) == ("loss_weighting", ["loss"])


def routed(flipped: bool) -> Callable[[Any, dict[str, Any]], None]:
    """Choose experts; where `flipped`, others at a position whose token then moves."""

    def change(place, values):
        chosen = np.tile([0, 1], (4, WIDTH + LONGEST, 2, 1)).astype("i4")
        if flipped:
            chosen[:, WIDTH, 0] = [1, 5]
            values["log_prob"] = values["log_prob"].copy()
            values["log_prob"][:, 1] -= 0.4
        values["routed_experts"] = chosen

    return change


def test_expert_choices(judge) -> None:
    result = judge(edited(RUN.engine(), routed(False)), edited(RUN.trainer(), routed(True)))
    assert causes(result) == ["moe_routing"]


def test_expert_choices_that_move_nothing(judge) -> None:
    def change(place, values):
        routed(False)(place, values)
        values["routed_experts"][:, WIDTH, 0] = [1, 5]

    result = judge(edited(RUN.engine(), routed(False)), edited(RUN.trainer(), change))
    assert result["verdict"] == "same"


def test_a_cause_in_two_runs(judge) -> None:
    def change(place, values):
        values["rollout_log_prob"] = RUN._log_probs(place, 1.0, True)

    assert causes(judge(RUN.trainer(), edited(RUN.trainer(), change))) == ["temperature"]


def test_rows_dealt_otherwise(judge) -> None:
    other = RUN.trainer()
    dealt = {(s, 1 - r, 1 - m): values for (s, r, m), values in other.items()}
    assert judge(RUN.trainer(), dealt)["verdict"] == "same"


def test_no_partner_is_unknown(judge) -> None:
    def change(_, values):
        values["uid"] = values["uid"] + 5000
        values["prompt_ids"] = values["prompt_ids"] + 1000

    later = {(s + 7, r, m): values for (s, r, m), values in RUN.trainer().items()}
    result = judge(RUN.trainer(), edited(later, change))
    assert (result["verdict"], result["read"]["matched"]) == ("unknown", 0)
    assert "nothing_compared" in [w["code"] for w in result["warnings"]]
