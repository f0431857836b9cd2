"""Reads the elements of one saved tensor: `.npy`, and `.pt` as torch.save writes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .checkpoint.saved_tensor import SavedTensor
from .checkpoint.torch_file import read_torch_file
from .dtypes import Array
from .errors import ReadError


def read_values(path: Path) -> Array:
    """Return the elements of a saved tensor as an array; bfloat16 and float8 become float32.

    Raises:
        ReadError: the file is missing, broken, or more than a plain tensor.
    """
    if path.suffix == ".npy":
        return _numpy(path)
    saved = read_torch_file(str(path))
    if saved.unsafe:
        raise ReadError(f"{path} names {', '.join(saved.unsafe)}, which no tensor needs")
    if not isinstance(saved.value, SavedTensor):
        raise ReadError(f"{path} holds {type(saved.value).__name__}, not a tensor")
    try:
        return saved.value.array()
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from None


def _numpy(path: Path) -> Array:
    try:
        found: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ReadError(f"{path} cannot be read: {error}") from None
    return found
