"""Number formats that NumPy does not have, as floats that hold every value of them exactly.

bfloat16: the upper half of a float32. float8: OCP 8-bit floating point specification (OFP8), 2023:
E4M3 (no infinities, one NaN of each sign) and E5M2 (as IEEE 754); the fnuz forms after Graphcore.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "UntypedStorage": "uint8",
}
"""Class of a storage in a torch file -> dtype."""

EPS = {
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "bfloat16": 2.0**-8,
    "float16": 2.0**-11,
    "float32": 2.0**-24,
    "float64": 2.0**-53,
}
"""Largest relative error of rounding to nearest (IEEE 754-2019: half a unit in the last place)."""

_FLOAT8 = {  # exponent bits, mantissa bits, bias, has infinities, NaN only at negative zero
    "float8_e4m3fn": (4, 3, 7, False, False),
    "float8_e5m2": (5, 2, 15, True, False),
    "float8_e4m3fnuz": (4, 3, 8, False, True),
    "float8_e5m2fnuz": (5, 2, 16, False, True),
}


def decode(content: Any, dtype: str) -> Array:
    """Return the numbers in little-endian bytes, flat, in a dtype of NumPy that holds them."""
    if dtype == "bfloat16":
        upper: Array = np.frombuffer(content, "<u2").astype("<u4") << 16
        floats: Array = upper.view(np.float32)
        return floats
    if dtype in _FLOAT8:
        codes: Array = _float8(dtype)[np.frombuffer(content, "u1")]
        return codes
    return np.frombuffer(content, np.dtype(dtype).newbyteorder("<"))


@cache
def _float8(dtype: str) -> Array:
    """Return the value of each of the 256 codes."""
    exponent_bits, mantissa_bits, bias, infinite, unsigned_zero = _FLOAT8[dtype]
    codes = np.arange(256)
    sign = np.where(codes >> 7, -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & (2**exponent_bits - 1)
    mantissa = (codes & (2**mantissa_bits - 1)) / 2**mantissa_bits
    normal = (1 + mantissa) * 2.0 ** (exponent - bias)
    values = sign * np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), normal)
    top = exponent == 2**exponent_bits - 1
    if infinite:
        values[top] = np.where(mantissa[top] == 0, sign[top] * np.inf, np.nan)
    elif unsigned_zero:
        values[128] = np.nan
    else:
        values[(codes & 127) == 127] = np.nan
    return np.asarray(values.astype("f4"))
