"""Pickles built opcode by opcode, to run something or to exhaust memory."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any


def text(word: str) -> bytes:
    return b"\x8c" + bytes([len(word)]) + word.encode()


def long_text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


CALLABLES = {
    "open": ("builtins", "open", ("{target}", "w")),
    "io.open": ("io", "open", ("{target}", "w")),
    "system": ("os", "system", ("touch {target}",)),
    "posix": ("posix", "system", ("touch {target}",)),
    "eval": ("builtins", "eval", ("open({target!r}, 'w')",)),
    "exec": ("builtins", "exec", ("open({target!r}, 'w')",)),
    "popen": ("subprocess", "Popen", ("touch {target}",)),
    "import": ("builtins", "__import__", ("antigravity",)),
    "getattr": ("builtins", "getattr", ("os", "system")),
    "dotted": ("os", "path.os.system", ("touch {target}",)),
    "torch": ("torch.serialization", "os.system", ("touch {target}",)),
    "codecs": ("codecs", "open", ("{target}", "w")),
    "shutil": ("shutil", "rmtree", ("{target}",)),
    "runpy": ("runpy", "run_path", ("{target}",)),
    "partial": ("functools", "partial", ("x",)),
    "methodcaller": ("operator", "methodcaller", ("system", "x")),
    "load": ("torch", "load", ("{target}",)),
    "from_bytes": ("torch.storage", "_load_from_bytes", ("x",)),
    "numpy": ("numpy.testing._private.utils", "runstring", ("x", "y")),
    "python2": ("__builtin__", "eval", ("1",)),
    "nt": ("nt", "system", ("x",)),
    "ctypes": ("ctypes", "CDLL", ("x",)),
    "pickle": ("pickle", "loads", ("x",)),
}


def named(module: str, name: str, how: str) -> bytes:
    """Return the opcodes that push a global."""
    if how == "GLOBAL":
        return f"c{module}\n{name}\n".encode()
    if how == "STACK_GLOBAL":
        return text(module) + text(name) + b"\x93"
    return long_text(module) + b"r\x05\x00\x00\x00" + long_text(name) + b"\x93"


def arguments(args: tuple[str, ...]) -> bytes:
    return b"(" + b"".join(map(long_text, args)) + b"t"


def called(module: str, name: str, args: tuple[str, ...], how: str) -> bytes:
    """Return a pickle that calls a global, in one of the ways there are."""
    if how == "INST":
        return b"(" + b"".join(map(long_text, args)) + f"i{module}\n{name}\n.".encode()
    if how == "OBJ":
        pushed = b"".join(map(long_text, args))
        return b"(" + named(module, name, "GLOBAL") + pushed + b"o."
    head = b"\x80\x04" + named(module, name, "STACK_GLOBAL") + arguments(args)
    if how == "NEWOBJ":
        return head + b"\x81."
    if how == "NEWOBJ_EX":
        return head + b"}\x92."
    if how == "BUILD":
        return head + b"R}" + long_text("x") + b"K\x01sb."
    if how == "dropped":
        return head + b"R0}."
    if how == "as key":
        return b"\x80\x04}" + head[2:] + b"RK\x01s."
    assert how == "REDUCE"
    return head + b"R."


WAYS = ("REDUCE", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "BUILD", "dropped", "as key")

BROKEN = [
    b"\x80\x04\x82\x01.",  # EXT1: a code that nobody registered
    b"\x80\x04\x83\x01\x00.",
    b"\x80\x04\x84\x01\x00\x00\x00.",
    b"\x80\x04}" + b"\x82\x01" + b"s.",
    b"P123\n.",  # a persistent id that is text
    b"\x80\x04K\x01Q.",
    b"\x80\x05\x97.",  # NEXT_BUFFER without buffers
    b"\x80\x09N.",  # a protocol that does not exist
    b"\x80\x04R.",
    b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",  # BINBYTES8 of 2**63 bytes
    b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
    b"\x80\x04\x8b\xff\xff\xff\x7f.",  # LONG4 of 2 GiB
    b"\x80\x02Nr\xff\xff\xff\xff0N",  # LONG_BINPUT of 2**32, which would reserve 64 GiB
    b"",
    b"no pickle at all",
]
"""What is no whole pickle."""


class Evil:
    """What torch.save writes of an object with a bad __reduce__."""

    def __init__(self, target: Path) -> None:
        self.target = str(target)

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.target}",)
