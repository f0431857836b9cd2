"""Tensors as torch.save spells them: a view of a storage, which lies in a file or in bytes."""

from __future__ import annotations

from dataclasses import dataclass

from ..dtypes import Array, dtype_of, widened
from ..errors import ReadError
from ..inert import Fixed
from .files import Files, InFile, extent
from .reading import read
from .tensors import Shape, Tensor, whole


@dataclass
class Storage(Fixed):
    """A run of bytes that tensors are views of.

    Args:
        dtype: short form; `` for bytes that each tensor gives a dtype.
        numel: elements, or bytes where there is no dtype.
        place: (path or bytes, offset, size, big endian); None until it is known.
    """

    dtype: str
    numel: int
    place: tuple[str | bytes, int, int, bool] | None = None


@dataclass(frozen=True)
class SavedTensor(Fixed):
    """A tensor as torch.save spells it."""

    storage: Storage
    offset: int
    shape: Shape
    strides: Shape
    dtype: str

    def tensor(self) -> Tensor:
        """Return it as a tensor to be read.

        Raises:
            ReadError: it reaches beyond its storage.
        """
        if self.storage.place is None:
            raise ReadError("a tensor's storage is missing")
        path, start, size, big = self.storage.place
        itemsize = dtype_of(self.dtype).itemsize
        numbers = (self.offset, *self.shape, *self.strides)
        if len(self.shape) != len(self.strides) or any(
            not isinstance(n, int) or n < 0 for n in numbers
        ):
            raise ReadError("a tensor has a shape that cannot be")
        if (self.offset + extent(self.shape, self.strides)) * itemsize > size:
            raise ReadError("a tensor reaches beyond its storage")
        offset = start + self.offset * itemsize
        in_order = self.strides == _rows(self.shape)
        strides = None if in_order else self.strides
        return whole(InFile(path, offset, self.dtype, self.shape, strides, big), self.dtype)

    def array(self) -> Array:
        """Return its elements, in a dtype of NumPy that holds each of them exactly.

        Raises:
            ReadError: it reaches beyond its storage.
        """
        with Files() as files:
            return widened(read(self.tensor(), files))


def saved_array(content: bytes, dtype: str, shape: Shape) -> SavedTensor:
    """Return the elements of a tensor, row by row, as one that torch saved."""
    storage = Storage(dtype, len(content), (content, 0, len(content), False))
    return SavedTensor(storage, 0, shape, _rows(shape), dtype)


def _rows(shape: Shape) -> Shape:
    """Return the strides of an array whose rows lie one after the other."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))
