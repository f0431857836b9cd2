"""How far two arrays are apart."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.pairing import REAL_ERRORS
from pipeline.real_values import real_errors

NAMES = list(REAL_ERRORS)[4:]


def errors(a: list, b: list, dtype: str = "float32") -> dict:
    kind = "float32" if dtype == "bfloat16" else dtype
    return dict(zip(NAMES, real_errors(np.array(a, kind), np.array(b, kind), dtype), strict=True))


def test_one_element_off() -> None:
    found = errors([[1, 2], [4, 0]], [[1, 2.001], [4, 0]])
    assert abs(found["max_abs"] - 0.001) < 1e-6
    assert (found["scale"], found["thousandth"], found["first_index"]) == (4.0, 1.0, [0, 1])
    assert found["cosine"] < 1


def test_zeros_are_equal_and_have_no_cosine() -> None:
    found = errors([0, 0], [0, 0])
    assert (found["cosine"], found["max_abs"], found["first_index"]) == (None, 0.0, None)
    assert errors([0, 0], [1, 0])["cosine"] is None


def test_steps_between_representable_numbers() -> None:
    assert errors([1.0], [1.0 + 2**-23])["ulp"] == 1
    assert errors([-0.0], [0.0])["ulp"] == 0
    assert errors([1.0], [1.0 + 2**-7], "bfloat16")["ulp"] == 1
    assert errors([1.0], [1.0 + 2**-51], "float64")["ulp"] == 2
    assert errors([-1.0], [1.0], "float16")["ulp"] == 2 * 0x3C00


def test_nan_in_its_place_and_elsewhere() -> None:
    nan = float("nan")
    assert errors([1, nan], [1, nan])["other_nonfinite"] is False
    assert errors([1, nan], [nan, 1])["other_nonfinite"] is True
    assert errors([nan], [nan])["max_abs"] == 0.0


@pytest.mark.parametrize(
    ("a", "b", "other"),
    [
        (np.float32([0.0, 1]), np.float32([-0.0, 1]), True),
        (np.uint32([0x7FC00000]).view("f4"), np.uint32([0x7FC00001]).view("f4"), True),
        (np.float32([0.0, 1]), np.float32([0.0, 1]), False),
        (np.float32([0.0, 1]), np.float32([-0.0, 2]), False),  # the numbers differ
        (np.int32([1]), np.int64([1]), False),
    ],
)
def test_other_bits_of_equal_numbers(a: np.ndarray, b: np.ndarray, other: bool) -> None:
    found = dict(zip(NAMES, real_errors(a, b, "float32"), strict=True))
    assert found["other_bits"] is other


def test_an_empty_tensor() -> None:
    assert errors([], [])["max_abs"] == 0.0
