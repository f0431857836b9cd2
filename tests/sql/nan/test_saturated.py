from __future__ import annotations

import pytest

TENSORS = "step rank seq slot direction role dtype saturated"


def test_every_column_of_a_tensor_at_its_limit(ask) -> None:
    db = ask("nan/saturated").table("tensors", TENSORS, "2 1 7 input.1 input buffer float16 true")
    assert db.rows() == [(2, 1, 7, "input.1", "input", "buffer", "float16")]


@pytest.mark.parametrize("saturated", ["false", "-"], ids=["below", "not recorded"])
def test_not_a_tensor_below_the_limit(ask, saturated: str) -> None:
    tensors = f"0 0 3 input.0 input value float16 {saturated}", "0 0 3 output.0 output value - true"
    assert ask("nan/saturated").table("tensors", TENSORS, *tensors).rows("slot") == [("output.0",)]


def test_nothing_on_record_gives_nothing(ask) -> None:
    assert ask("nan/saturated").rows() == []
