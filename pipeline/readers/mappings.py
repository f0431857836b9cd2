"""Reads which names of the target stand for which of the benchmark, as users write it for msprobe.

api      - {ms_api: mint.nn.functional.dense, pt_api: torch.nn.functional.linear}
cell     backbone.0.MyBlock: encoder.layers.0.Block        paths with their class
layer    MyBlock: {my_mlp: mlp}                            names of children
data     Cell.a.A.forward.0.input.0: Module.b.B.forward.0.input.0
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

Name = tuple[str, str, str]
"""What is named (api, path, child, call), its name in the target, its name in the benchmark."""


class MappingError(ValueError):
    """A file is no mapping of its kind."""


def read_mapping(kind: str, file: Path) -> list[Name]:
    """Return the names of one file.

    Args:
        kind: api, cell, layer or data.
        file: YAML.

    Raises:
        MappingError: it cannot be read, or has another form.
    """
    try:
        content = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise MappingError(
            f"{file} cannot be read as YAML: {' '.join(str(error).split())}"
        ) from None
    try:
        return READERS[kind](content)
    except (AttributeError, KeyError, TypeError):
        raise MappingError(
            f"{file} is no {kind} mapping; its forms stand in docs/compare.md"
        ) from None


def _api(content: list[Mapping[str, str]]) -> list[Name]:
    return [("api", _last(pair["ms_api"]), _last(pair["pt_api"])) for pair in content]


def _cell(content: Mapping[str, str]) -> list[Name]:
    return [("path", _path(ours), _path(theirs)) for ours, theirs in content.items()]


def _layer(content: Mapping[str, Mapping[str, str]]) -> list[Name]:
    return [
        ("child", ours, theirs)
        for children in content.values()
        for ours, theirs in children.items()
    ]


def _data(content: Mapping[str, str]) -> list[Name]:
    names = {(_call(ours), _call(theirs)) for ours, theirs in content.items()}
    return [("call", ours, theirs) for ours, theirs in sorted(names)]


READERS: dict[str, Callable[[Any], list[Name]]] = {
    "api": _api,
    "cell": _cell,
    "layer": _layer,
    "data": _data,
}
"""Kind of a mapping -> what reads it."""


def _last(api: str) -> str:
    return api.rpartition(".")[2]


def _path(path: str) -> str:
    """Return a module's path without its class and without Cell or Module before it."""
    words = path.removeprefix("Cell.").removeprefix("Module.").split(".")
    return ".".join(words[:-1] if words[-1][:1].isupper() else words)


def _call(row: str) -> str:
    """Return the name of the call that a row of msprobe's table belongs to."""
    for word in (".input", ".output", ".parameters."):
        head, found, _ = row.rpartition(word)
        if found:
            return head
    return row
