"""Pairs the tensors of two checkpoints, across layouts and families.

First whole tensors that are known by the same parts; then, for what is left, each tensor of A is put
together from the parts that B has, in A's own shape. Nothing is read for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .contents import Contents
from .layouts import Family, family
from .tensors import Tensor, cut, inverse, joined, whole

Tensors = Mapping[str, Tensor]

VOCABULARY = ("embed_tokens.weight", "lm_head.weight", "lm_head.bias")
TIED = "lm_head.weight", "embed_tokens.weight"

SLOTS = {"moment1": "exp_avg", "moment2": "exp_avg_sq", "moments": "exp_avg", "master": "fp32_param"}
"""Slots of the optimizer by other names -> the usual ones."""


@dataclass(frozen=True)
class Pair:
    """Two tensors to be compared, of one shape.

    Args:
        name, name_b: what they are called on either side.
        a, b: the tensors; `b` in the shape of `a`.
        kind: `weight`, `optimizer`, `replica`, `tied`, `master`.
        part: what kind of weight it is, without its layer and expert: `self_attn.q_proj.weight`.
        layer: its layer; None for what is in none.
        padding: rows of the vocabulary that are not compared.
        padded: how many rows at the end may be padding, where nothing says how many are.
        note: what a reader should know of the pairing.
    """

    name: str
    name_b: str
    a: Tensor
    b: Tensor
    kind: str = "weight"
    part: str = ""
    layer: int | None = None
    padding: int = 0
    padded: int = 0
    note: str = ""


@dataclass
class Unpaired:
    """A tensor that has no partner.

    Args:
        name: on its side; `side` is `a` or `b`.
        status: `only_in_a`, `only_in_b`, `different` (another shape), `incomparable`.
        hint: why.
    """

    name: str
    side: str
    kind: str
    status: str
    hint: str = ""
    name_b: str = ""
    shape_a: tuple[int, ...] | None = None
    shape_b: tuple[int, ...] | None = None
    a: Tensor | None = None
    b: Tensor | None = None


@dataclass
class Pairing:
    """All pairs of two checkpoints, and what has none."""

    pairs: list[Pair] = field(default_factory=list)
    unpaired: list[Unpaired] = field(default_factory=list)


@dataclass(frozen=True)
class _Side:
    """Some tensors of one checkpoint, with their rules."""

    contents: Contents
    rules: Family
    config: Mapping[str, Any]
    tensors: dict[str, Tensor]
    outer: str = ""

    def key(self, name: str) -> str:
        return self.rules.key(name).removeprefix(self.outer)

    def keys(self) -> dict[str, str]:
        """Return key -> name; names that would fall together keep their own."""
        keyed = {name: self.key(name) for name in self.tensors}
        count = Counter(keyed.values())
        return {(key if count[key] == 1 else name): name for name, key in keyed.items()}


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
    sides = [
        _Side(c, family(c.family, layout), config | _own(c), _joined(c, other))
        for c, other in ((a, b), (b, a))
    ]
    sides = [replace(s, outer=o) for s, o in zip(sides, _outer(*sides), strict=True)]
    _pair_tensors(found, *sides, "weight", "")
    _tie(found, *sides)
    _add_replicas(found, sides)
    if optimizer:
        _pair_optimizers(found, *sides)
        _add_masters(found, sides)
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


def _outer(a: _Side, b: _Side) -> tuple[str, str]:
    """Return a common beginning of all names of each side to drop, where more pair without it."""
    choices = [("", ""), (_common(a), ""), ("", _common(b)), (_common(a), _common(b))]

    def matches(choice: tuple[str, str]) -> int:
        left, right = (replace(s, outer=o).keys() for s, o in zip((a, b), choice, strict=True))
        return len(left.keys() & right.keys())

    return max(dict.fromkeys(choices), key=matches)


def _common(side: _Side) -> str:
    """Return the words that all names begin with, up to a dot."""
    names = list(side.keys())
    if len(names) < 2:
        return ""
    low, high = min(names), max(names)
    same = next((n for n, (x, y) in enumerate(zip(low, high, strict=False)) if x != y), len(low))
    return low[: max(low.rfind(".", 0, same), low.rfind("/", 0, same)) + 1]


def _pair_tensors(found: Pairing, a: _Side, b: _Side, kind: str, slot: str) -> None:
    keys_a, keys_b = a.keys(), b.keys()
    left_b = dict(keys_b)
    left_a: dict[str, str] = {}
    for key, name in keys_a.items():
        other = keys_b.get(key)
        made = other and _whole_pair(a, b, key, name, other, kind, slot)
        if made and other:
            found.pairs.append(made)
            left_b.pop(key)
        else:
            left_a[key] = name
    used = _pair_parts(found, a, b, left_a, left_b, kind, slot)
    for key in [*left_a]:
        if key in left_b:  # known by the same parts, and of another shape
            name, other = left_a.pop(key), left_b.pop(key)
            found.unpaired.append(_other_shape(a, b, name, other, kind, slot))
    for key, name in left_a.items():
        shape = a.tensors[name].shape
        entry = Unpaired(_slotted(name, slot), "a", kind, "only_in_a", shape_a=shape)
        found.unpaired.append(entry)
    for name in left_b.values():
        if name not in used:
            shape = b.tensors[name].shape
            entry = Unpaired(_slotted(name, slot), "b", kind, "only_in_b", shape_b=shape)
            found.unpaired.append(entry)


def _whole_pair(
    a: _Side, b: _Side, key: str, name: str, other: str, kind: str, slot: str
) -> Pair | None:
    """Return a pair of whole tensors; None if their shapes do not fit."""
    left, right = a.tensors[name], b.tensors[other]
    told = Pair(_slotted(name, slot), _slotted(other, slot), left, right, kind, **_place(key))
    if name in a.contents.unmerged or other in b.contents.unmerged:
        told = replace(told, note="no layout rule knows it; its parts were joined by shape")
    if key.endswith(VOCABULARY) and left.shape and right.shape[1:] == left.shape[1:]:
        return _vocabulary(told, a, b)
    return told if left.shape == right.shape else None


def _vocabulary(told: Pair, a: _Side, b: _Side) -> Pair | None:
    """Return a pair of the rows that are words; what pads a table is not compared."""
    rows = [told.a.shape[0], told.b.shape[0]]
    padded = [bool(side.contents.config.get("padded")) for side in (a, b)]
    bare = [n for n, pads in zip(rows, padded, strict=True) if not pads]
    if len(set(bare)) == 2 or not any(padded):
        return told if rows[0] == rows[1] else None
    known = bare[0] if bare else a.config.get("vocab_size")
    words = min([known, *rows] if known else rows)
    if bare and min(rows) < bare[0]:
        return None
    below = max(side.contents.config.get("padding_below") or 0 for side in (a, b))
    return replace(
        told,
        a=cut(told.a, 0, words),
        b=cut(told.b, 0, words),
        padding=max(rows) - words,
        padded=0 if known else below,
    )


def _pair_parts(
    found: Pairing,
    a: _Side,
    b: _Side,
    left_a: dict[str, str],
    left_b: dict[str, str],
    kind: str,
    slot: str,
) -> set[str]:
    """Pair what is left of A with what B's parts make up; return the tensors of B that are used.

    What has been paired drops out of `left_a` and `left_b`.
    """
    parts_b: dict[str, tuple[str, Tensor]] = {}
    wanted = Counter[str]()
    for name in left_b.values():
        for part, tensor in b.rules.parts(name, b.tensors[name], b.config):
            parts_b[part.removeprefix(b.outer)] = name, tensor
            wanted[name] += 1
    taken = Counter[str]()
    for key, name in [*left_a.items()]:
        tensor = a.tensors[name]
        mine = a.rules.parts(name, whole(tensor, tensor.dtype), a.config)
        got = [(t, parts_b.get(part.removeprefix(a.outer))) for part, t in mine]
        if any(other is None or other[1].shape != t.shape for t, other in got):
            continue
        others = [other for _, other in got if other]
        dtype = others[0][1].dtype
        pieces = [(t, other[1]) for t, other in got if other]
        made = inverse(tensor.shape, dtype, pieces)
        names = " + ".join(dict.fromkeys(n for n, _ in others))
        told = Pair(_slotted(name, slot), _slotted(names, slot), tensor, made, kind, **_place(key))
        found.pairs.append(told)
        taken.update(n for n, _ in others)
        left_a.pop(key)
    used = {name for name, count in taken.items() if count >= wanted[name]}
    for key, name in [*left_b.items()]:
        if name in used:
            left_b.pop(key)
    return used


def _other_shape(a: _Side, b: _Side, name: str, other: str, kind: str, slot: str) -> Unpaired:
    left, right = a.tensors[name], b.tensors[other]
    hint = f"shape {list(left.shape)} against {list(right.shape)}"
    return Unpaired(
        _slotted(name, slot), "a", kind, "different", hint, _slotted(other, slot),
        left.shape, right.shape, left, right,
    )  # fmt: skip


def _tie(found: Pairing, a: _Side, b: _Side) -> None:
    """Pair an output layer that only one side has with the embedding it is a copy of."""
    for entry in [*found.unpaired]:
        side = a if entry.status == "only_in_a" else b if entry.status == "only_in_b" else None
        if side is None or not side.key(entry.name).endswith(TIED[0]):
            continue
        outer = side.key(entry.name)[: -len(TIED[0])]
        name = side.keys().get(outer + TIED[1])
        if name and side.tensors[name].shape == side.tensors[entry.name].shape:
            head, embedding = side.tensors[entry.name], side.tensors[name]
            found.pairs.append(Pair(entry.name, name, head, embedding, "tied", note=entry.status))
            found.unpaired.remove(entry)


def _add_replicas(found: Pairing, sides: Iterable[_Side]) -> None:
    for letter, side in zip("ab", sides, strict=True):
        for copy in side.contents.replicas:
            if copy.tensor.shape == copy.copy.shape:
                where = f"{copy.where} of {letter.upper()}"
                pair = Pair(copy.name, where, copy.tensor, copy.copy, "replica")
                found.pairs.append(pair)


def _pair_optimizers(found: Pairing, a: _Side, b: _Side) -> None:
    """Pair the optimizer's state slot by slot, with the layout rules of the weights."""
    left, right = _by_slot(a.contents), _by_slot(b.contents)
    for slot in sorted(left.keys() | right.keys()):
        mine = replace(a, tensors=left.get(slot, {}))
        others = replace(b, tensors=right.get(slot, {}))
        _pair_tensors(found, mine, others, "optimizer", slot)


def _by_slot(contents: Contents) -> dict[str, dict[str, Tensor]]:
    found: dict[str, dict[str, Tensor]] = {}
    for (name, slot), tensor in contents.optimizer.items():
        found.setdefault(SLOTS.get(slot, slot), {})[name] = tensor
    return found


def _add_masters(found: Pairing, sides: Iterable[_Side]) -> None:
    """Pair each master weight with the weight of its own checkpoint that it should round to."""
    for letter, side in zip("ab", sides, strict=True):
        masters = _by_slot(side.contents).get("fp32_param", {})
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


def _slotted(name: str, slot: str) -> str:
    return f"optimizer.{name}.{slot}" if slot and name else f"optimizer.{slot}" if slot else name


def _place(key: str) -> dict[str, Any]:
    """Return the layer and the kind of weight of a key."""
    first = key.partition("+")[0]
    words = first.split(".")
    layer = next((int(w) for w in words if w.isdecimal()), None)
    at = next((n for n, w in enumerate(words) if w.isdecimal()), -1)
    kind = ".".join("*" if w.isdecimal() else w for w in words[at + 1 :])
    return {"part": kind, "layer": layer}
