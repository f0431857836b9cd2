"""What a tensor of a paired call is found by."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("cross", "keys"),
    [
        (False, ["input.1", "input.weight", "output.0", "parameters.weight"]),
        (True, ["input1", "input2", "output1", "parameters.weight"]),
    ],
)
def test_slots_or_places(ask, cross: bool, keys: list[str]) -> None:
    db = ask("diff/tensor_keys", cross=cross).table(
        "tensors",
        "step rank seq slot direction role",
        "0 0 5 input.weight input value",
        "0 0 5 input.1 input value",
        "0 0 5 output.0 output value",
        "0 0 5 output.1 output echo",
        "0 0 5 parameters.gamma parameter value",
    )
    assert sorted(row[0] for row in db.rows("key")) == keys


def test_a_dtensor_counts_what_this_rank_holds(ask) -> None:
    layout = '{"mesh":[2,2],"placements":["R","S(0)"]}'
    db = ask("diff/tensor_keys").table(
        "tensors",
        "step rank seq slot direction role numel layout",
        f"0 0 5 input.0 input value 8 {layout}",
        "0 0 5 input.1 input value 8 -",
    )
    assert db.rows("slot numel sharding shards") == [
        ("input.0", 4, "S0/2", 2), ("input.1", 8, None, None),
    ]  # fmt: skip
