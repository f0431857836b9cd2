from __future__ import annotations

import pytest

COLUMNS = "key entry step rank micro same_samples value_1 value_2"


def scalars(ask, *rows: str):
    return ask("rl/scalars").table("arrays", COLUMNS, *rows).rows("key step rank micro a b cause")


def test_at_its_place_where_the_samples_are_the_same(ask) -> None:
    rows = ["loss '' 0 0 0 true 1.0 1.0", "loss '' 0 0 1 true 1.0 1.5"]
    assert scalars(ask, *rows) == [("loss", 0, 0, 1, 1.0, 1.5, "values")]


def test_sums_of_the_step_where_samples_were_dealt_otherwise(ask) -> None:
    same = ["loss '' 0 0 0 false 1.0 2.0", "loss '' 0 1 0 false 2.0 1.0"]
    assert scalars(ask, *same) == []
    other = ["loss '' 0 0 0 false 1.0 2.0", "loss '' 0 1 0 false 2.0 1.5"]
    assert scalars(ask, *other) == [("loss", 0, None, None, 3.0, 3.5, "values")]


@pytest.mark.parametrize(("b", "found"), [("1.005", 0), ("1.02", 1)])
def test_rounding_is_no_difference(ask, b: str, found: int) -> None:
    assert len(scalars(ask, f"loss '' 0 0 0 true 1.0 {b}")) == found


@pytest.mark.parametrize(("whole", "found"), [("true", 1), ("false", 0)])
def test_whole_numbers_are_not_rounded(ask, whole: str, found: int) -> None:
    db = ask("rl/scalars").table("arrays", f"{COLUMNS} whole", f"n '' 0 0 0 true 1000 1001 {whole}")
    assert len(db.rows()) == found


def test_near_zero_the_usual_size_counts(ask) -> None:
    rows = ["loss '' 0 0 0 true 1.0 1.0", "loss '' 0 0 1 true 1e-6 2e-6"]
    assert scalars(ask, *rows) == []


@pytest.mark.parametrize(("b", "found"), [("nan", 0), ("1.0", 1)])
def test_nan_on_one_side_alone(ask, b: str, found: int) -> None:
    rows = scalars(ask, f"loss '' 0 0 0 true nan {b}")
    assert [row[-1] for row in rows] == ["nan"] * found


def test_arrays_are_no_scalars(ask) -> None:
    assert scalars(ask, "loss '' 0 0 0 true - -") == []


def test_nothing(ask) -> None:
    assert ask("rl/scalars").rows() == []
