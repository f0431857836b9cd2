"""One name for one thing: what trainers call the same value differently.

Sources: verl `DataProto` batch keys, TRL `GRPOTrainer` inputs, OpenRLHF `Experience`, slime
`Sample` and train data, AReaL trajectories.
"""

from __future__ import annotations

from collections.abc import Collection

ALIASES = {
    "prompts": "prompt_ids",
    "responses": "response_ids",
    "response": "response_ids",
    "prompt": "prompt_ids",
    "completion_ids": "response_ids",
    "completion_mask": "response_mask",
    "loss_masks": "response_mask",
    "rollout_log_probs": "rollout_log_prob",
    "rollout_logprobs": "rollout_log_prob",
    "sampling_per_token_logps": "rollout_log_prob",
    "sequences": "input_ids",
    "action_mask": "response_mask",
    "loss_mask": "response_mask",
    "action_log_probs": "old_log_prob",
    "prox_logp": "old_log_prob",
    "base_action_log_probs": "ref_log_prob",
    "ref_logp": "ref_log_prob",
    "old_log_probs": "old_log_prob",
    "old_per_token_logps": "old_log_prob",
    "ref_log_probs": "ref_log_prob",
    "ref_per_token_logps": "ref_log_prob",
    "log_probs": "log_prob",
    "logprobs": "log_prob",
    "per_token_logps": "log_prob",
    "rewards": "reward",
    "score": "reward",
    "scores": "reward",
    "advantage": "advantages",
    "kl_penalty": "kl",
    "mask": "response_mask",
    "input": "prompt_text",
    "output": "response_text",
    "completion": "response_text",
    "rollout_routed_experts": "routed_experts",
    "sample": "sample_index",
    "sample_idx": "sample_index",
}

TEXTS = {
    "prompts": "prompt_text",
    "prompt": "prompt_text",
    "response": "response_text",
    "completion": "response_text",
}
"""Names that mean text when they hold text."""

TRAINER_ONLY = frozenset(
    {"advantages", "returns", "values", "loss", "grad_norm", "old_log_prob", "ref_log_prob", "kl"}
)
"""What a rollout engine cannot know."""

ENGINE, TRAINER = "rollout_log_prob", "old_log_prob"
LOG_PROBS = ("rollout_log_prob", "log_prob", "old_log_prob", "ref_log_prob")
TOKENS = ("response_ids", "response_mask", *LOG_PROBS, "returns", "values", "kl")
"""One number a response token."""
IDENTITY = ("uid", "sample_index", "prompt_ids", "response_ids", "attention_mask", "response_mask")
TEXT_KEYS = ("prompt_text", "response_text")


def identity(known: Collection[str]) -> set[str]:
    """Return which of some keys tell samples apart, and where their tokens stand.

    Whole sequences and texts are many bytes: they are of use only where ids are not there.
    """
    found = {*IDENTITY, "reward"} & set(known)
    if "response_ids" not in known:
        found |= {"input_ids", *TEXT_KEYS} & set(known)
    return found


def canonical(key: str, *, text: bool = False) -> str:
    """Return the name that one thing has everywhere."""
    if text and key in TEXTS:
        return TEXTS[key]
    return ALIASES.get(key, key)
