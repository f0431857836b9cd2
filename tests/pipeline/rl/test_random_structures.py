"""Whatever users save, in whatever shape: no crash, no false alarm, no silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ...rollouts import save
from .test_every_key import SAMPLES, batch

LOG_PROBS = ("old_log_prob", "teacher_logps")
NAMES = {"uid", "sample_index"}
"""Keys that say who a sample is, and nothing about it."""


def whole() -> dict[str, Any]:
    """Return every key, those that name samples among them."""
    uid = np.arange(SAMPLES) // 2
    return {"uid": uid, "sample_index": np.arange(SAMPLES) % 2, **batch()}


def deformed(values: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the same with some keys gone, or in a shape or type that nobody expects."""
    found = dict(values)
    for key in rng.choice(list(found), rng.integers(0, 4), replace=False):
        array = found[key]
        if array.ndim == 0:
            continue
        odd = [
            lambda a: a[:-1],
            lambda a: a[:0],
            lambda a: a[..., None],
            lambda a: a.reshape(-1),
            lambda a: a.reshape(len(a), -1)[:, :-1],
            lambda a: [row[: n % 4] for n, row in enumerate(a.reshape(len(a), -1))],
            lambda a: a.astype("f2"),
            lambda a: [f"text {n}" for n in range(len(a))],
        ]
        found[key] = odd[rng.integers(len(odd))](array)
    return {key: value for key, value in found.items() if rng.random() < 0.9}


def steps(rng: np.random.Generator) -> dict[tuple[int, int, int], dict[str, Any]]:
    places = [(step, rank, micro) for step in (0, 1) for rank in (0, 1) for micro in (0, 1)]
    saved = {place: deformed(whole(), rng) for place in places if rng.random() < 0.9}
    return {place: values for place, values in saved.items() if values}


@pytest.mark.parametrize("seed", range(24))
def test_two_odd_collections_may_change_places(compare, tmp_path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (save(steps(rng), tmp_path / side) for side in ("a", "b"))
    there, back = compare(a, b), compare(b, a)
    assert there["verdict"] == back["verdict"]
    assert there["read"]["matched"] == back["read"]["matched"]
    assert {key for f in there["findings"] for key in f["keys"]} == {
        key for f in back["findings"] for key in f["keys"]
    }


@pytest.mark.parametrize("seed", range(24))
def test_an_odd_collection_beside_itself_is_the_same(judge, seed: int) -> None:
    collection = steps(np.random.default_rng(seed))
    result = judge(collection, collection)
    assert (result["verdict"], result["findings"]) == ("same", [])


@pytest.mark.parametrize("seed", range(24))
def test_one_key_that_differs_is_told_of_whatever_else_is_there(judge, seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = (0.2, 0.5, 0.8)[seed % 3]
    some = {k: v for k, v in whole().items() if rng.random() < share or k == "reward"}
    key = rng.choice(sorted(set(some) - NAMES))
    array = some[key]
    changed = ~array if array.dtype == bool else array + 1 if array.dtype.kind == "i" else array * 2
    if array.dtype.kind == "f" and key not in LOG_PROBS:
        changed = changed + np.float32(0.5)
    result = judge({(0, 0, 0): some}, {(0, 0, 0): some | {key: changed}})
    assert result["verdict"] == "different"
    lengths = {"response_ids"} if key.endswith("_mask") else set()  # where a mask alone tells them
    assert result["findings"][0]["keys"][0] in {key} | lengths
