"""Values of RL training as rows of a shard, every bit as it was.

A value is copied at once, on its own device, since training goes on to change it; bytes are made of
the copy later, by the thread that writes.
"""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .errors import CrossrankError

Row = dict[str, Any]
Late = Callable[[], Row]
"""Gives the row; called by the thread that writes."""


class ValueKindError(CrossrankError):
    """A value that cannot be saved as what it is."""


def rows_of(key: str, value: Any) -> Iterator[Late]:
    """Yield a row for a value, or one for each element of a list of tensors or of a dict.

    Raises:
        ValueKindError: it is none of tensor, array, number, text, or lists and dicts of them.
    """
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield _row(f"{key}.{name}", part, str(name))
    elif isinstance(value, (list, tuple)) and any(_is_array(part) for part in value):
        for place, part in enumerate(value):
            yield _row(f"{key}.{place}", part, str(place))
    else:
        yield _row(key, value, None)


def _row(name: str, value: Any, entry: str | None) -> Late:
    if _is_array(value):
        late = _texts(value.tolist()) if str(value.dtype) == "object" else _array(value)
    elif isinstance(value, (bool, int, float)):
        late = _numbers(name, [value], [])
    elif isinstance(value, str):
        late = _texts([value])
    elif isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        late = _texts(value)
    elif isinstance(value, (list, tuple)) and all(isinstance(p, (list, tuple)) for p in value):
        flat = [number for part in value for number in part]
        late = _numbers(name, flat, None, [len(part) for part in value])
    elif isinstance(value, (list, tuple)):
        late = _numbers(name, value, [len(value)])
    else:
        raise ValueKindError(
            f"{name} is a {type(value).__name__}; expected a tensor, an array, numbers, texts, or "
            "lists and dicts of them"
        )
    return lambda: {"entry": entry, **late()}


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _texts(values: Any) -> Late:
    texts = [str(value) for value in values]
    return lambda: {"dtype": "text", "shape": [len(texts)], "texts": texts}


def _numbers(
    name: str, values: Any, shape: list[int] | None, lengths: list[int] | None = None
) -> Late:
    """Return numbers of Python, which are 64 bits wide."""
    kinds = {type(value) for value in values}
    if not kinds <= {bool, int, float}:
        unknown = sorted(kind.__name__ for kind in kinds - {bool, int, float})
        raise ValueKindError(f"{name} holds {', '.join(unknown)}; expected numbers or texts")
    dtype, code = ("bool", "b") if kinds == {bool} else ("int64", "q")
    if float in kinds:
        dtype, code = "float64", "d"
    try:
        data = array(code, values).tobytes()
    except OverflowError:
        raise ValueKindError(f"{name} holds a number beyond 64 bits; save it as text") from None
    return lambda: {"dtype": dtype, "shape": shape, "lengths": lengths, "data": data}


def _array(value: Any) -> Late:
    """Copy a tensor of PyTorch or MindSpore, or an array; the bytes are made later."""
    if hasattr(value, "data_ptr"):
        return _tensor(value)
    if hasattr(value, "asnumpy"):
        dtype = str(value.dtype).lower()
        value = (value.float() if dtype == "bfloat16" else value).asnumpy()
    copy = value.astype(value.dtype.newbyteorder("<"))
    shape = list(copy.shape)
    return lambda: {"dtype": str(copy.dtype.name), "shape": shape, "data": copy.tobytes()}


def _tensor(value: Any) -> Late:
    local = value.to_local() if hasattr(value, "to_local") else value
    copy = local.detach().clone()
    ready = _event(copy)

    def late() -> Row:
        if ready is not None:
            ready.synchronize()
        here = copy.cpu().contiguous()
        size = here.numel() * here.element_size()
        data = ctypes.string_at(here.data_ptr(), size) if size else b""
        dtype = str(here.dtype).replace("torch.", "")
        return {"dtype": dtype, "shape": list(here.shape), "data": data}

    return late


def _event(copy: Any) -> Any:
    """Return what tells when a copy on a device is done; None on the CPU, where it is."""
    if copy.device.type == "cpu":
        return None
    event = sys.modules["torch"].Event(copy.device)
    event.record()
    return event
