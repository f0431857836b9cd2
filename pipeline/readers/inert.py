"""Unpickles to inert values: no class of a file is imported, no callable of a file is called.

A pickle is a program; its GLOBAL and REDUCE opcodes name any function and call it. Here a name
becomes a new empty class (`Record`), and a call of it only notes the arguments. Storages, arrays
and plain containers are known by name and become values of our own. The standard's list of opcodes:
https://docs.python.org/3/library/pickletools.html
"""

from __future__ import annotations

import io
import pickle
import re
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from .errors import ReadError

HARMLESS = {
    *("argparse.Namespace", "collections.Counter", "collections.deque", "types.SimpleNamespace"),
    *("datetime.date", "datetime.datetime", "datetime.timedelta", "datetime.timezone"),
    *("decimal.Decimal", "fractions.Fraction", "uuid.UUID", "_io.BytesIO", "_io.StringIO"),
    *("pathlib.Path", "pathlib.PosixPath", "pathlib.PurePosixPath", "pathlib.WindowsPath"),
    *("pathlib._local.PosixPath", "pathlib._local.WindowsPath", "pathlib.PureWindowsPath"),
    *("builtins.complex", "builtins.slice", "builtins.range", "builtins.object"),
    *("builtins.int", "builtins.float", "builtins.str", "builtins.bool", "builtins.bytes"),
    *("builtins.list", "builtins.tuple", "builtins.type", "copyreg._reconstructor"),
}
"""Names of the standard library that real checkpoints hold, and that say nothing bad of a file."""

REBUILDS = re.compile(
    r"torch\._utils\._rebuild_\w+|torch\._tensor\._rebuild_\w+|torch\.serialization\._get_layout"
    r"|torch\.(device|Size|Generator)|numpy\.random\._pickle\.\w+"
)
"""Functions by which torch and numpy spell values; noted like a class."""


class Plain(dict[Any, Any]):
    """A mapping of any dictionary class; its attributes are dropped."""

    def __init__(self, *args: Any) -> None:
        given = args[-1] if args else ()
        super().__init__(given if isinstance(given, (dict, list, tuple)) else ())

    def __setstate__(self, state: Any) -> None: ...


class Record:
    """What a class or function that is not known would have been given.

    Args:
        args: of its call.
    """

    path = ""
    """Its full name."""
    called: Callable[[str], None] = staticmethod(lambda name: None)
    """Told of each call of a function."""

    def __new__(cls, *args: Any, **named: Any) -> Record:
        """Note the arguments."""
        record = object.__new__(cls)
        record.args, record.state, record.items = args, None, []
        return record

    def __init__(self, *args: Any, **named: Any) -> None:
        self.args: tuple[Any, ...] = args
        self.state: Any = None
        self.items: list[Any] = []
        self.called(self.path)

    def __call__(self, *args: Any) -> Record:
        """Note a call of what a call gave."""
        return Record(self, *args)

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items.append((key, value))

    def append(self, value: Any) -> None:
        """Note an element."""
        self.items.append(value)

    def extend(self, values: list[Any]) -> None:
        """Note elements."""
        self.items += values

    add = append

    @property
    def fields(self) -> dict[str, Any]:
        """Return its attributes."""
        parts = self.state if isinstance(self.state, tuple) else (self.state,)
        found: dict[str, Any] = {}
        for part in parts:
            found |= part if isinstance(part, dict) else {}
        return found


class Fixed:
    """A value of ours that a pickle can hold, but not change."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError(f"sets the state of a {type(self).__name__}")


class Known(Fixed):
    """A function of ours under the name of one that is known."""

    __slots__ = ("make",)
    make: Callable[..., Any]

    def __init__(self, make: Callable[..., Any]) -> None:
        object.__setattr__(self, "make", make)

    def __call__(self, *args: Any) -> Any:
        """Make the value."""
        return self.make(*args)

    def __setattr__(self, name: str, value: Any) -> None:
        raise pickle.UnpicklingError(f"sets {name} of a function")


def unpickle(
    file: bytes | IO[bytes], known: Mapping[str, Any], storage: Callable[[Any], Any]
) -> tuple[Any, list[str]]:
    """Return the value of a pickle, and the names in it that no checkpoint needs.

    Args:
        file: the pickle, or a file that stands where one begins; it then stands behind it.
        known: full name -> what stands for it.
        storage: makes a value of a persistent id.

    Raises:
        ReadError: it is cut or no pickle.
    """
    loader = _Loader(io.BytesIO(file) if isinstance(file, bytes) else file)
    loader.prepare(known, storage)
    try:
        return loader.load(), loader.unsafe
    except (RecursionError, MemoryError) as error:
        raise ReadError(f"its pickle is built to exhaust memory ({error})") from None
    except ReadError:
        raise
    except Exception as error:
        # a hostile pickle can make the loader fail in any way
        unsafe = f"; it names {', '.join(loader.unsafe)}" if loader.unsafe else ""
        raise ReadError(f"its pickle cannot be read: {error}{unsafe}") from None


class _Loader(pickle._Unpickler):
    """The standard loader in Python: its memo is a dictionary.

    The one in C is twice as fast, and reserves as much memory as a hostile LONG_BINPUT names.
    """

    def prepare(self, known: Mapping[str, Any], storage: Callable[[Any], Any]) -> None:
        self.unsafe: list[str] = []
        self._known = known
        self._storage = storage
        self._types: dict[str, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        path = f"{_MOVED.get(module, module)}.{name}"
        if path in STANDARD:
            return STANDARD[path]
        if path in self._known:
            return self._known[path]
        if path not in self._types:
            self._types[path] = type("Record", (Record,), {"path": path, "called": self._called})
            if module.partition(".")[0] in sys.stdlib_module_names and path not in HARMLESS:
                self._refuse(path)
        return self._types[path]

    def persistent_load(self, pid: Any) -> Any:
        return self._storage(pid)

    def _called(self, path: str) -> None:
        last = path.rpartition(".")[2].lstrip("_")
        if last[:1].islower() and path not in HARMLESS and not REBUILDS.fullmatch(path):
            self._refuse(path)

    def _refuse(self, path: str) -> None:
        if path not in self.unsafe:
            self.unsafe.append(path)


class Array:
    """A numpy array inside of a pickle.

    Args:
        shape, dtype, data: as numpy spells them; `data` is a list for Python objects.
    """

    def __init__(self, shape: Any = (0,), dtype: Any = None, data: Any = b"") -> None:
        self.shape, self.dtype, self.data, self.fortran = shape, dtype, data, False

    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, self.fortran, self.data = state

    @property
    def value(self) -> Any:
        """Return a numpy array of numbers, or a list of objects."""
        kind = self.dtype.numpy if isinstance(self.dtype, DType) else None
        if kind is None or kind.hasobject or not isinstance(self.data, (bytes, bytearray)):
            return self.data
        flat = np.frombuffer(self.data, kind)
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


class DType:
    """A numpy dtype inside of a pickle."""

    def __init__(self, name: Any = "", *ignored: Any) -> None:
        self.name, self.order = name, "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    @property
    def numpy(self) -> Any:
        """Return the dtype; None for structures and objects."""
        if not isinstance(self.name, str) or not re.fullmatch(r"[<>|=]?[biufcSUV]\d*", self.name):
            return None
        found = np.dtype(self.name)
        return found.newbyteorder(">") if self.order == ">" else found


def _encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1", "ascii", "utf-8"):
        raise ReadError(f"its pickle encodes text as {encoding}")
    return text.encode(encoding)


def _scalar(dtype: Any, data: Any = b"") -> Any:
    kind = dtype.numpy if isinstance(dtype, DType) else None
    return np.frombuffer(data, kind)[0].item() if kind and isinstance(data, bytes) else data


_MOVED = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
}

STANDARD: dict[str, Any] = {
    "collections.OrderedDict": Plain,
    "collections.defaultdict": Known(lambda *args: Plain(*args[1:])),
    "builtins.dict": Plain,
    "builtins.set": Known(lambda items=(): set(items)),
    "builtins.frozenset": Known(lambda items=(): frozenset(items)),
    "builtins.bytearray": Known(lambda *args: _bytes(*args)),
    "_codecs.encode": Known(_encode),
    "numpy.ndarray": Array,
    "numpy.dtype": DType,
    "numpy._core.multiarray._reconstruct": Known(lambda *args: Array()),
    "numpy._core.multiarray.scalar": Known(_scalar),
    "numpy._core.numeric._frombuffer": Known(
        lambda data, dtype, shape, *_: Array(shape, dtype, data)
    ),
}
"""Names that every checkpoint may hold -> what stands for them."""


def _bytes(*args: Any) -> bytes:
    """Return the content of a bytearray, which older protocols spell as text or numbers."""
    first = args[0] if args else b""
    if isinstance(first, str):
        return _encode(first, *args[1:])
    return bytes(first) if isinstance(first, (bytes, bytearray, list, tuple)) else b""
