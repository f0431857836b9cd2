"""What a cause means, what showed it, and the test that confirms it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EVIDENCE = {
    "missing_sample": "{samples} samples stand on one side alone",
    "padding_side": (
        "in {samples} samples the prompt's ids are the same and stand elsewhere between the "
        "padding, and on one side alone attention does not fit them"
    ),
    "retokenised": "{samples} samples have other token ids although it is the same text",
    "longer_response": (
        "{samples} responses are equal up to the end of the shorter one, {numbers} tokens go on"
    ),
    "mask": "in {samples} samples {numbers} places are counted by one side alone{shape}",
    "reward": (
        "{samples} samples with the same tokens got other rewards, the largest difference is "
        "{max_abs:.6g}"
    ),
    "nan": (
        "{samples} samples have numbers that are not finite on one side alone, where they "
        "count{loss}"
    ),
    "advantage_std0": (
        "advantages are NaN on one side in {groups} groups, just those whose rewards are all "
        "equal: their standard deviation is 0"
    ),
    "loss_weighting": (
        "all tokens, rewards and log-probs agree, the losses do not, and {relation} in every "
        "micro batch"
    ),
    "logprob_alignment": (
        "laid {shift:+d} tokens against each other the log-probs agree (level {shift_level:.3g} "
        "instead of {unshifted:.3g})"
    ),
    "topk_renormalisation": "{side} is lower, never higher{same_text}",
    "temperature": "the likely tokens moved one way and the unlikely the other{slope_text}",
    "stale_rollout_weights": (
        "the gap jumps at step {from_step}: level up to {level:.3g} from there on, "
        "{quiet_level:.3g} at most elsewhere"
    ),
    "moe_routing": (
        "{flips} of {sets} expert sets differ, and the gap is larger just at the tokens predicted"
        " from there ({loud_flipped} of {loud} loud contexts, by chance with probability "
        "{chance:.2g})"
    ),
    "configuration": "the saved configurations differ: {differences}",
    "shape": "{shape_1} against {shape_2}",
    "dtype": "{dtypes}: the difference is what that rounds",
    "values": "{what}",
}

CONFIRM = {
    "missing_sample": (
        "look for the sample's uid in the log of the side that lacks it: filtered, timed out, or "
        "lost between engine and trainer"
    ),
    "padding_side": (
        "print one prompt with its attention_mask on both sides; tokenise with the same "
        "padding_side"
    ),
    "retokenised": "hand the engine's token ids to the trainer instead of its text, and run again",
    "longer_response": "compare stop tokens, ignore_eos and max_new_tokens of both sides",
    "mask": (
        "build response_mask from what was generated, not from attention, at the token itself; "
        "compare its sum with the response's length"
    ),
    "reward": "score one of these samples with both reward functions",
    "nan": "look at the named sample's logits at the named token",
    "advantage_std0": "add an epsilon to the standard deviation, or leave such groups out",
    "loss_weighting": (
        "compute the loss of one micro batch by hand: sum over all tokens of the step, divided "
        "once, against a mean of means"
    ),
    "logprob_alignment": (
        "check the shift between logits and labels: logits at t predict token t + 1"
    ),
    "topk_renormalisation": (
        "compute both sides once with top_k = -1 and top_p = 1: the gap must go"
    ),
    "temperature": (
        "divide the trainer's logits by the sampling temperature (or ask the engine for processed"
        " log-probs), and run one step again"
    ),
    "stale_rollout_weights": (
        "compare a hash of the weights on the named ranks in engine and trainer right after the "
        "sync of that step"
    ),
    "moe_routing": (
        "replay the engine's expert choice in the trainer, or compute the router in float32"
    ),
    "configuration": "run once with the same configuration on both sides",
    "shape": "look at padding and batch size of both runs",
    "dtype": "save both sides in the same number format",
    "values": "save the inputs of the first differing value on both sides and compare those",
}


def evidence(cause: str, facts: Mapping[str, Any]) -> str:
    """Return what showed a cause."""
    return EVIDENCE[cause].format_map(_Known(facts))


class _Known(dict[str, Any]):
    """Facts; what is not known reads as a question mark, whatever its format."""

    def __missing__(self, key: str) -> Unknown:
        return Unknown()

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key) if key in self else None
        return Unknown() if value is None else value


class Unknown:
    """Stands for a number that is not on record."""

    def __format__(self, spec: str) -> str:
        return "?"
