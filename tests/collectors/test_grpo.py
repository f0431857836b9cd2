"""A real GRPO on two gloo ranks, generation by `generate`: each planted fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.engine_local import LocalEngine
from pipeline.rl_analysis import judge_collections, measure_collections, rl_store
from pipeline.rl_collection import open_collection
from pipeline.rl_tasks import Sides, list_samples
from pipeline.settings import limits

from .grpo import run_grpo


def compared(a: Path, b: Path | None = None, keys: tuple[str, str] | None = None) -> dict:
    left = open_collection(a)
    with rl_store(limits(1)) as store:
        sides = Sides(left, open_collection(b) if b else left, keys)
        engine = LocalEngine(1)
        setting = measure_collections(sides, list_samples(sides, engine), store, engine)
        return judge_collections(sides, setting, store, engine)


@pytest.mark.parametrize(
    ("fault", "steps", "cause", "where"),
    [
        ("", 3, None, None),
        ("temperature", 2, "temperature", [0, 1]),
        ("mask", 2, "mask", [0, 1]),
        ("stale", 5, "stale_rollout_weights", [3, 4]),
        ("topk_missing", 2, "topk_renormalisation", [0, 1]),
        ("alignment", 2, "logprob_alignment", [0, 1]),
    ],
    ids=["healthy", "temperature", "mask", "stale", "topk", "alignment"],
)
def test_engine_against_trainer(tmp_path: Path, fault: str, steps: int, cause, where) -> None:
    out = run_grpo(tmp_path, fault, steps=steps)
    result = compared(out / "engine", out / "trainer")
    assert result["read"]["matched"] == 16 * steps
    assert [f["cause"] for f in result["findings"]] == ([cause] if cause else [])
    assert result["verdict"] == ("different" if cause else "same")
    if cause:
        assert result["findings"][0]["where"] == {"steps": where, "ranks": [0, 1]}
    inside = compared(out / "trainer", keys=("rollout_log_prob", "log_prob"))
    same = cause in (None, "mask")  # one run has one mask
    assert [f["cause"] for f in inside["findings"]] == ([] if same else [cause])
