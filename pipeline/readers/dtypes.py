"""Names of number formats, and their elements; NumPy lacks bfloat16 and float8, ml_dtypes has them.

https://github.com/jax-ml/ml_dtypes
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from .errors import ReadError

Array = np.ndarray[Any, np.dtype[Any]]

SHORT = {"half": "float16", "float": "float32", "double": "float64", "int": "int32"} | {
    "long": "int64", "short": "int16", "char": "int8", "byte": "uint8", "complexfloat": "complex64",
    "complexdouble": "complex128",
}  # fmt: skip
"""Other names of dtypes -> the short form."""


@lru_cache(maxsize=64)
def dtype_of(name: str) -> np.dtype[Any]:
    """Return the numpy dtype of a short form: `float32`, `bfloat16`, `float8_e4m3fn`.

    Raises:
        ReadError: nothing is known about it.
    """
    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        raise ReadError(f"its dtype {name} is not known") from None


def is_known(name: str) -> bool:
    """Tell whether a dtype can be compared."""
    try:
        return dtype_of(name).kind in "biufcV"
    except ReadError:
        return False


def widened(array: Array) -> Array:
    """Return numbers in a dtype of NumPy's own, which holds each of them exactly."""
    of_ml_dtypes = array.dtype.isbuiltin == 2  # 2: registered by another library
    return array.astype(np.float32) if of_ml_dtypes else array
