from __future__ import annotations

import pytest

COLUMNS = (
    "key step rank of_samples dtype_1 dtype_2 shape_1 shape_2 total within_2 nan_1 nan_2 max_abs "
    "max_rel value_1 equal whole misfit"
)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("k 0 1 false f f [2] [3] 3 2 0 0 0 0 - - - -", [("shape", [1], 1)]),
        ("k 0 1 false f f [2] [2] 2 2 1 0 0 0 - - - -", [("nan", [1], 0)]),
        ("k 0 1 false f f [2] [2] 2 1 0 0 3 1 - - - -", [("values", [1], 1)]),
        ("k 0 1 false f f [2] [2] 2 2 0 0 0 0.001 - - - -", []),
        ("k 0 1 false f h [2] [2] 2 2 0 0 0 0.001 - - - -", [("dtype", [1], 0)]),
        ("k 0 1 true f f [2] [3] 3 2 0 0 0 0 - - - -", []),
        ("k 0 1 false f f [] [] 1 0 0 0 1 1 5 - - -", []),
        ("k 0 1 false f f [2] [2] 2 2 0 0 1 0.001 - 1 true -", [("values", [1], 1)]),
        ("k 0 1 true f f [2,3] [2,4] 8 6 0 0 0 0 - 6 - true", [("shape", [1], 2)]),
    ],
    ids=[
        "shape",
        "nan",
        "values",
        "rounding",
        "dtype",
        "of samples",
        "a scalar",
        "whole",
        "misfit",
    ],
)
def test_what_differs(ask, row: str, found) -> None:
    db = ask("rl/place_events").table("arrays", COLUMNS, row)
    assert db.rows("cause ranks numbers") == found


def test_nothing(ask) -> None:
    assert ask("rl/place_events").rows() == []
