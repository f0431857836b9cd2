"""Arrays as they lie in files, opened by mapping the file into memory."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ..dtypes import Array, dtype_of
from ..errors import ReadError
from .tensors import Shape


class Files:
    """Files mapped into memory, until it is closed."""

    def __init__(self) -> None:
        self._maps: dict[str, mmap.mmap] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *error: object) -> None:
        for mapped in self._maps.values():
            with suppress(BufferError):  # an array of it is still in use; it goes with that
                mapped.close()
        self._maps.clear()

    def bytes(self, path: str) -> mmap.mmap:
        """Return the bytes of a file.

        Raises:
            ReadError: it cannot be read, or is empty.
        """
        if path not in self._maps:
            try:
                with open(path, "rb") as file:
                    if not os.fstat(file.fileno()).st_size:
                        raise ReadError(f"{path} is empty (0 bytes)")
                    self._maps[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except OSError as error:
                raise ReadError(f"{path} cannot be read: {error.strerror}") from None
        return self._maps[path]


@dataclass(frozen=True)
class InFile:
    """An array in a file, or in bytes that came inside of one.

    Args:
        path: of the file; or the bytes.
        offset: of the first element, in bytes.
        dtype: in the short form.
        shape: of the array.
        strides: in elements; None: rows lie one after the other (C order).
        big_endian: whether the most significant byte comes first.
    """

    path: str | bytes
    offset: int
    dtype: str
    shape: Shape
    strides: Shape | None = None
    big_endian: bool = False

    def open(self, files: Files) -> Array:
        """Return it; no value is read yet."""
        dtype = dtype_of(self.dtype)
        if self.big_endian:
            dtype = dtype.newbyteorder(">")
        mapped = self.path if isinstance(self.path, bytes) else files.bytes(self.path)
        count = extent(self.shape, self.strides)
        if self.offset + count * dtype.itemsize > len(mapped):
            raise ReadError(f"{self.path!s} is shorter than when it was looked at")
        flat = np.frombuffer(mapped, dtype, count, self.offset)
        if self.strides is None:
            return flat.reshape(self.shape)
        steps = tuple(n * dtype.itemsize for n in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps, writeable=False)


def extent(shape: Shape, strides: Shape | None) -> int:
    """Return how many elements lie between the first and the last of an array, with both."""
    if 0 in shape:
        return 0
    if strides is None:
        return int(np.prod(shape, dtype=object)) if shape else 1
    return 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
