"""Where a record came from: call stacks (stack.json) and the tree of calls (construct.json)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .json_text import read_object

_FRAME = re.compile(
    r"File (?P<file>.*?), line (?P<line>\d+), in (?P<where>.*?), ?\n ?(?P<code>.*)", re.S
)
_OWN = "/msprobe/"  # older versions list their own frames too
_OPTIMIZER = ("/torch/optim/", "/mindspore/nn/optim/", "/mindspore/mint/optim/")


def stack_groups(folder: Path) -> list[tuple[list[str], list[Any]]]:
    """Return (record names, frames) for each call stack; both forms of stack.json."""
    content = read_object(folder / "stack.json")
    if isinstance(content.get("0"), list):  # {"0": [[names], [frames]]}
        groups = [tuple(group) for group in content.values() if len(group) == 2]
    else:  # {name: [frames]}
        groups = [([name], frames) for name, frames in content.items()]
    return [(names, frames if isinstance(frames, list) else [frames]) for names, frames in groups]


class CallStacks:
    """Call stacks by record name; `optimizer` has the calls that an optimizer made."""

    def __init__(self, folder: Path) -> None:
        self._text: dict[str, str] = {}
        self.optimizer: set[str] = set()
        for names, frames in stack_groups(folder):
            text = "\n".join(short_frame(str(frame)) for frame in frames if _OWN not in str(frame))
            self._text.update(dict.fromkeys(names, text))
            if any(place in text for place in _OPTIMIZER):
                self.optimizer.update(names)

    def text(self, name: str) -> str | None:
        """Return the frames, innermost first, one a line; None when none was recorded."""
        return self._text.get(name)


def short_frame(frame: str) -> str:
    """Return `file:line in function | code` for msprobe's two-line form; other text on one line."""
    match = _FRAME.match(frame)
    if not match:
        return " ".join(frame.split())
    code = " ".join(match["code"].split())
    return f"{match['file']}:{match['line']} in {match['where']}" + (f" | {code}" if code else "")


class CallTree:
    """Which call encloses which, the micro step, and what the optimizer made."""

    def __init__(self, folder: Path) -> None:
        self._parent: dict[str, str | None] = {}
        self._micro_step: dict[str, int] = {}
        for name, parent in read_object(folder / "construct.json").items():
            if isinstance(parent, list) and len(parent) == 2:  # Megatron: [parent, micro step]
                parent, micro_step = parent
                if isinstance(micro_step, int):
                    self._micro_step[name] = micro_step
            if parent is None or isinstance(parent, str):
                self._parent[name] = parent or None
        self.optimizer = {name for name, parent in self._parent.items() if parent == "optimizer"}

    def parent(self, name: str) -> str | None:
        """Return the enclosing record's name; None at the root or when it was not recorded."""
        return self._parent.get(name)

    def micro_step(self, name: str) -> int | None:
        """Return the micro step, from 0; None when it was not recorded."""
        return self._micro_step.get(name)
