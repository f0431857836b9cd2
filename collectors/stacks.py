"""Where in the user's code a call stands: one text of frames, innermost first."""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType

DEEPEST = 64
"""Frames that are kept, from the innermost on."""


class Stacks:
    """Call stacks as text; the text of one that was seen before is not made again."""

    def __init__(self) -> None:
        self._texts: dict[tuple[tuple[int, int], ...], str] = {}
        self._frames: dict[tuple[int, int], str] = {}
        self._codes: dict[int, CodeType] = {}  # keeps their ids from being used again

    def text(self) -> str:
        """Return the stack of the caller: `file:line in function | code`, a frame a line."""
        frame: FrameType | None = sys._getframe(1)
        places: list[tuple[int, int]] = []
        while frame is not None and len(places) < DEEPEST:
            code = frame.f_code
            if id(code) not in self._codes:
                self._codes[id(code)] = code
            places.append((id(code), frame.f_lineno))
            frame = frame.f_back
        key = tuple(places)
        if key not in self._texts:
            lines = map(self._line, key)
            self._texts[key] = "\n".join(line for line in lines if line)
        return self._texts[key]

    def _line(self, place: tuple[int, int]) -> str:
        if place not in self._frames:
            code, line = self._codes[place[0]], place[1]
            file = code.co_filename
            own = file.startswith(OWN) or file.endswith("torch/overrides.py")
            source = linecache.getline(file, line).strip()
            text = "" if own else f"{file}:{line} in {code.co_name} | {source}"
            self._frames[place] = text.encode("utf-8", "backslashreplace").decode()
        return self._frames[place]


OWN = os.path.dirname(Stacks.text.__code__.co_filename) + os.sep
"""Where our own frames come from, by the name they have in a stack: perhaps through a link."""
