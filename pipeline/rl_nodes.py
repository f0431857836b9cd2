"""RL data of which every node holds what its own processes saved, under the same path.

A step's samples may lie on several nodes, and their partners on others. A task whose parts lie on
one node runs there; for any other, the parts are fetched from their nodes when its turn comes, so
only the steps under way travel at a time.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from .engine import Engine, Failure, reason_of
from .errors import DumpError
from .nodes import SCHEME
from .readers.rollouts import Part
from .rl_collection import Collection, open_collection


@dataclass(frozen=True)
class Look:
    """Where each node is to look: the path on every node, and the steps; all when empty."""

    path: str
    steps: tuple[int, ...]

    def __str__(self) -> str:
        return self.path


def look_here(look: Look) -> Collection | str:
    """Return what this node holds, or why it holds nothing; runs on every node."""
    try:
        return open_collection(Path(look.path), look.steps)
    except DumpError as error:
        return str(error)


def open_on_nodes(place: str, steps: Sequence[int], engine: Engine) -> Collection:
    """Find RL data: in a folder, or with node:// before it on the nodes of an engine.

    Raises:
        DumpError: there is none.
    """
    if not place.startswith(SCHEME):
        return open_collection(Path(place), steps)
    path = place.removeprefix(SCHEME)
    held: dict[Part, list[str]] = defaultdict(list)
    config: dict[str, object] = {}
    words = {}
    for node, found in engine.everywhere(look_here, Look(path, tuple(steps))):
        if isinstance(found, Collection):
            config = config or found.config
            for part in found.parts:
                held[part].append(node)
        words[node] = reason_of(found) if isinstance(found, Failure) else str(found)
    if not held:
        raise DumpError(f"no node holds RL data under {path}: {'; '.join(words.values())}")
    parts = [
        replace(part, node="" if len(nodes) == len(words) else node)
        for part, nodes in held.items()
        for node in (nodes[:1] if len(nodes) == len(words) else nodes)
    ]
    ordered = sorted(parts, key=lambda part: (part.step, part.rank, part.files, part.node))
    return Collection(Path(path), tuple(ordered), config)


def node_of(parts: Sequence[Part]) -> str:
    """Return the node that all parts lie on; nothing when any will do, or none has all."""
    nodes = {part.node for part in parts}
    return nodes.pop() if len(nodes) == 1 else ""


def fetched(parts: Sequence[Part], engine: Engine) -> dict[str, bytes]:
    """Return the files of parts that lie on several nodes; none when one node has all."""
    if len({part.node for part in parts}) < 2:
        return {}
    found: dict[str, bytes] = {}
    for part, files in engine.map(read_files, list(parts), where=lambda part: part.node):
        if isinstance(files, Failure):
            raise DumpError(
                f"{part.node}: {part.files[0]} could not be fetched: {reason_of(files)}"
            )
        found |= {f"/{_folder(part)}{name}": content for name, content in files.items()}
    return found


def read_files(part: Part) -> dict[str, bytes]:
    """Return the files of a part, those of its folders too; runs on the part's node."""
    files = [Path(name) for name in part.files]
    whole = [f for one in files for f in (one.rglob("*") if one.is_dir() else [one])]
    return {str(file): file.read_bytes() for file in whole if file.is_file()}


@contextmanager
def laid_out(parts: Sequence[Part], files: Mapping[str, bytes]) -> Iterator[dict[Part, Part]]:
    """Yield each part as it can be read here: fetched files lie in a folder for that long."""
    if not files:
        yield {part: part for part in parts}
        return
    with tempfile.TemporaryDirectory(prefix="crossrank-") as root:
        for name, content in files.items():
            file = Path(root + name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        here = f"{root}/{{}}"
        yield {
            part: replace(part, files=tuple(here.format(_folder(part)) + f for f in part.files))
            for part in parts
        }


def _folder(part: Part) -> str:
    """Return a folder name for what comes from one node."""
    return "".join(char if char.isalnum() else "_" for char in part.node) or "shared"
