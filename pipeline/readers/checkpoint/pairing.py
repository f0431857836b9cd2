"""Pairs the tensors of two checkpoints, across layouts and families.

First whole tensors that are known by the same parts; then, for what is left, each tensor of A is
put together from the parts that B has, in A's own shape. Nothing is read for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .contents import MASTER, Contents
from .layouts import family
from .matching import Pair, Pairing, Side, pair_tensors
from .tensors import Tensor, joined

TIED = "lm_head.weight", "embed_tokens.weight"

SLOTS = {"moment1": "exp_avg", "moment2": "exp_avg_sq", "moments": "exp_avg", "master": MASTER}
"""Slots of the optimizer by other names -> the usual ones."""


def pair(
    a: Contents, b: Contents, *, optimizer: bool, layout: str = "", vocabulary: int | None = None
) -> Pairing:
    """Return which tensor of A goes with what of B.

    Args:
        optimizer: pair the optimizer's state and the masters too.
        layout: a YAML file with more layout rules.
        vocabulary: entries of the vocabulary without padding, where no file says so.
    """
    found = Pairing()
    config = _config(a, b, vocabulary)
    left = Side(a, family(a.family, layout), config | _own(a), _joined(a, b))
    right = Side(b, family(b.family, layout), config | _own(b), _joined(b, a))
    outer_a, outer_b = _outer(left, right)
    left, right = replace(left, outer=outer_a), replace(right, outer=outer_b)
    pair_tensors(found, left, right, "weight", "")
    _soften(found, a, b)
    _tie(found, left, right)
    _add_replicas(found, (left, right))
    if optimizer:
        _pair_optimizers(found, left, right)
        _add_masters(found, (left, right))
        _soften(found, a, b)
    return found


def _own(contents: Contents) -> dict[str, Any]:
    return {k: v for k, v in contents.config.items() if v is not None}


def _config(a: Contents, b: Contents, vocabulary: int | None) -> dict[str, Any]:
    """Return the model's facts that either side has."""
    found = {**_own(b), **_own(a)}
    sizes = [c.config.get("vocab_size") for c in (a, b)]
    found["vocab_size"] = vocabulary or next((size for size in sizes if size), None)
    return found


def _joined(own: Contents, other: Contents) -> dict[str, Tensor]:
    """Return the tensors of a side; parts without a rule as the other side's shape tells."""
    found = dict(own.tensors)
    for name, parts in own.unmerged.items():
        there = other.tensors.get(name)
        shapes = {tuple(joined(parts, dim).shape): dim for dim in range(len(parts[0].shape))}
        if there is not None and there.shape == parts[0].shape:
            found[name] = parts[0]
        elif there is not None and there.shape in shapes:
            found[name] = joined(parts, shapes[there.shape])
        elif parts[0].shape:
            found[name] = joined(parts)
    return found


def _outer(a: Side, b: Side) -> tuple[str, str]:
    """Return a common beginning of all names of each side to drop, where more pair without it."""
    choices = [("", ""), (_common(a), ""), ("", _common(b)), (_common(a), _common(b))]

    def matches(choice: tuple[str, str]) -> int:
        left, right = (replace(s, outer=o).keys() for s, o in zip((a, b), choice, strict=True))
        return len(left.keys() & right.keys())

    return max(dict.fromkeys(choices), key=matches)


def _common(side: Side) -> str:
    """Return the words that all names begin with, up to a dot."""
    names = list(side.keys())
    if len(names) < 2:
        return ""
    low, high = min(names), max(names)
    same = next((n for n, (x, y) in enumerate(zip(low, high, strict=False)) if x != y), len(low))
    return low[: max(low.rfind(".", 0, same), low.rfind("/", 0, same)) + 1]


def _tie(found: Pairing, a: Side, b: Side) -> None:
    """Pair an output layer that only one side has with the embedding it is a copy of."""
    for entry in [*found.unpaired]:
        side = a if entry.side == "a" else b
        if entry.status == "different" or not side.key(entry.name).endswith(TIED[0]):
            continue
        outer = side.key(entry.name)[: -len(TIED[0])]
        name = side.keys().get(outer + TIED[1])
        if name and side.tensors[name].shape == side.tensors[entry.name].shape:
            head, embedding = side.tensors[entry.name], side.tensors[name]
            told = Pair(entry.name, name, head, embedding, "tied", otherwise=entry.status)
            found.pairs.append(told)
            found.unpaired.remove(entry)


def _add_replicas(found: Pairing, sides: Iterable[Side]) -> None:
    for letter, side in zip("ab", sides, strict=True):
        for copy in side.contents.replicas:
            if copy.tensor.shape == copy.copy.shape:
                where = f"{copy.where} of {letter.upper()}"
                pair = Pair(copy.name, where, copy.tensor, copy.copy, "replica")
                found.pairs.append(pair)


def _pair_optimizers(found: Pairing, a: Side, b: Side) -> None:
    """Pair the optimizer's state slot by slot, with the layout rules of the weights."""
    left, right = _by_slot(a.contents), _by_slot(b.contents)
    for slot in sorted(left.keys() | right.keys()):
        if slot in left and slot in right:
            mine, others = replace(a, tensors=left[slot]), replace(b, tensors=right[slot])
            pair_tensors(found, mine, others, "optimizer", slot)
        else:
            has, lacks = (a, b) if slot in left else (b, a)
            found.notes.append(f"{lacks.contents.path} holds no {slot}; {has.contents.path} does")


def _by_slot(contents: Contents) -> dict[str, dict[str, Tensor]]:
    found: dict[str, dict[str, Tensor]] = {}
    for (name, slot), tensor in contents.optimizer.items():
        found.setdefault(SLOTS.get(slot, slot), {})[name] = tensor
    return found


def _add_masters(found: Pairing, sides: Iterable[Side]) -> None:
    """Pair each master weight with the weight of its own checkpoint that it should round to."""
    for letter, side in zip("ab", sides, strict=True):
        masters = _by_slot(side.contents).get(MASTER, {})
        keys = side.keys()
        for name, master in masters.items():
            weight = side.tensors.get(keys.get(side.key(name), ""))
            if weight is not None and weight.shape == master.shape:
                where = f"its master in {letter.upper()}"
                found.pairs.append(Pair(name, where, master, weight, "master"))


def _soften(found: Pairing, a: Contents, b: Contents) -> None:
    """Say of what has no partner that it may lie in a file that could not be read."""
    for entry in found.unpaired:
        other = b if entry.status == "only_in_a" else a if entry.status == "only_in_b" else None
        if other is not None and other.damaged:
            entry.status = "incomparable"
            entry.hint = f"not found in {other.path}, of which not all could be read"
