"""How tensors lie over ranks."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize(
    ("mesh", "placements", "sharding", "shards"),
    [
        ([4], ["S(0)"], "S0/4", 4),
        ([4], ["Shard(dim=0)"], "S0/4", 4),
        ([2, 4], ["R", "S(1)"], "S1/4", 4),
        ([2, 4], ["Replicate()", "Shard(dim=1)"], "S1/4", 4),
        ([2, 4], ["_S(0, 2)", "S(0)"], "_S0/2 S0/4", 8),
        ([2, 4], ["_StridedShard(dim=0, sf=2)", "S(0)"], "_S0/2 S0/4", 8),
        ([2, 2], ["S(1)", "P(sum)"], "S1/2 P/2", 2),
        ([2], ["Partial(avg)"], "P/2", 1),
        ([2], ["R"], None, None),
        ([1], ["S(0)"], None, None),
    ],
)
def test_sharding(call, mesh: list, placements: list, sharding: str | None, shards) -> None:
    found = call("sharding", json.dumps({"mesh": mesh, "placements": placements}))
    assert found == sharding
    assert call("shards_of", found) == shards


@pytest.mark.parametrize("macro", ["sharding", "shards_of"])
def test_nothing(call, macro: str) -> None:
    assert call(macro, None) is None


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [([2, 4], [2, 5], True), ([2, 4], [2, 4], False), ([2, 4], [3, 5], False), ([4], [4, 1], None)],
)
def test_one_longer(call, a: list[int], b: list[int], found: bool | None) -> None:
    assert bool(call("one_longer", a, b)) is bool(found)


@pytest.mark.parametrize(
    ("operation", "found"), [("reshape", True), ("t", True), ("add", False), ("", False)]
)
def test_is_view(call, operation: str, found: bool) -> None:
    assert call("is_view", operation) is found
