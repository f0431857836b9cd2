"""Dumps of which every node holds the ranks it ran, each on its own disk, under the same path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .engine import Engine, Failure, reason_of
from .errors import DumpError
from .shards import Dump, Shard, open_folder
from .wording import count

SCHEME = "node://"


@dataclass(frozen=True)
class Look:
    """Where each node is to look.

    Args:
        path: of the dump, on every node.
        steps: all of them when empty.
    """

    path: str
    steps: tuple[int, ...]

    def __str__(self) -> str:
        return self.path


def look_here(look: Look) -> Dump | str:
    """Return what this node holds, or why it holds nothing; runs on every node."""
    try:
        return open_folder(Path(look.path), look.path, look.steps)
    except DumpError as error:
        return str(error)


def open_nodes(path: str, steps: Sequence[int], engine: Engine) -> tuple[Dump, dict[str, str]]:
    """Find the shards that lie on the nodes of an engine.

    A rank that several nodes hold alike is on a disk they share, and is read by any of them. Where
    they differ, the record that was written last counts, and the result says so.

    Returns:
        The dump, and node -> what it holds, in words.

    Raises:
        DumpError: no node holds any of it.
    """
    found: dict[str, Dump] = {}
    words: dict[str, str] = {}
    for node, answer in engine.everywhere(look_here, Look(path, tuple(steps))):
        if isinstance(answer, Dump):
            found[node] = answer
            words[node] = f"holds {count(len(answer.shards), 'shard')}"
        else:
            words[node] = reason_of(answer) if isinstance(answer, Failure) else answer
    if not found:
        raise DumpError(
            f"no node holds a dump under {path}: "
            + "; ".join(f"{node}: {text}" for node, text in words.items())
        )
    shards, notes = _merged(found, words)
    first = next(iter(found.values()))
    kinds = {dump.kind for dump in found.values()}
    if len(kinds) > 1:
        raise DumpError(
            f"{path} holds shards of crossrank on some nodes and a dump of msprobe on others"
        )
    return Dump(SCHEME + path, first.kind, shards, first.run, notes), words


def _merged(
    found: dict[str, Dump], words: dict[str, str]
) -> tuple[tuple[Shard, ...], tuple[dict[str, Any], ...]]:
    """Return each rank's shard once, and warnings about ranks with different records."""
    copies: dict[tuple[int, int], list[Shard]] = defaultdict(list)
    for node, dump in found.items():
        for shard in dump.shards:
            copies[shard.step, shard.rank].append(replace(shard, node=node))
    shards, notes = [], []
    for (step, rank), held in sorted(copies.items()):
        chosen = max(held, key=lambda shard: shard.newest)
        if len({(shard.bytes, shard.newest) for shard in held}) > 1:
            others = [shard.node for shard in held if shard is not chosen]
            text = (
                f"step {step}: rank {rank} left different records on {', '.join(others)} and "
                f"{chosen.node}; that of {chosen.node} was written last and is used"
            )
            notes.append({"code": "rank_twice", "step": step, "rank": rank, "text": text})
        elif len(held) == len(words) > 1:  # a disk that all of them share
            chosen = replace(chosen, node="")
        shards.append(chosen)
    return tuple(shards), tuple(notes)
