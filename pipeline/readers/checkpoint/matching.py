"""Which tensors of two sides go together: whole ones by name, then by the parts of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .contents import Contents
from .layouts import Family
from .tensors import Tensor, cut, inverse, whole

VOCABULARY = ("embed_tokens.weight", "lm_head.weight", "lm_head.bias")


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
        otherwise: the status of what is not tied after all.
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
    otherwise: str = ""


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
    """All pairs of two checkpoints, what has none, and what was not compared at all."""

    pairs: list[Pair] = field(default_factory=list)
    unpaired: list[Unpaired] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Side:
    """Some tensors of one checkpoint, with their rules."""

    contents: Contents
    rules: Family
    config: Mapping[str, Any]
    tensors: dict[str, Tensor]
    outer: str = ""

    def key(self, name: str) -> str:
        """Return by what a tensor of this side is known on the other."""
        return self.rules.key(name).removeprefix(self.outer)

    def keys(self) -> dict[str, str]:
        """Return key -> name; names that would fall together keep their own."""
        keyed = {name: self.key(name) for name in self.tensors}
        count = Counter(keyed.values())
        return {(key if count[key] == 1 else name): name for name, key in keyed.items()}


def pair_tensors(found: Pairing, a: Side, b: Side, kind: str, slot: str) -> None:
    """Add the pairs of two sides to `found`, and what has no partner.

    Args:
        kind: of the pairs: `weight`, `optimizer`.
        slot: of the optimizer; nothing for weights.
    """
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
    for name in left_a.values():
        shape = a.tensors[name].shape
        entry = Unpaired(slotted(name, slot), "a", kind, "only_in_a", shape_a=shape)
        found.unpaired.append(entry)
    for name in left_b.values():
        if name not in used:
            shape = b.tensors[name].shape
            entry = Unpaired(slotted(name, slot), "b", kind, "only_in_b", shape_b=shape)
            found.unpaired.append(entry)


def _whole_pair(
    a: Side, b: Side, key: str, name: str, other: str, kind: str, slot: str
) -> Pair | None:
    """Return a pair of whole tensors; None if their shapes do not fit."""
    left, right = a.tensors[name], b.tensors[other]
    told = Pair(slotted(name, slot), slotted(other, slot), left, right, kind, **_place(key))
    if name in a.contents.unmerged or other in b.contents.unmerged:
        told = replace(told, note="no layout rule knows it; its parts were joined by shape")
    if key.endswith(VOCABULARY) and left.shape and right.shape[1:] == left.shape[1:]:
        return _vocabulary(told, a, b)
    return told if left.shape == right.shape else None


def _vocabulary(told: Pair, a: Side, b: Side) -> Pair | None:
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
    a: Side,
    b: Side,
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
        told = Pair(slotted(name, slot), slotted(names, slot), tensor, made, kind, **_place(key))
        found.pairs.append(told)
        taken.update(n for n, _ in others)
        left_a.pop(key)
    used = {name for name, count in taken.items() if count >= wanted[name]}
    for key, name in [*left_b.items()]:
        if name in used:
            left_b.pop(key)
    return used


def _other_shape(a: Side, b: Side, name: str, other: str, kind: str, slot: str) -> Unpaired:
    left, right = a.tensors[name], b.tensors[other]
    hint = f"shape {list(left.shape)} against {list(right.shape)}"
    return Unpaired(
        slotted(name, slot), "a", kind, "different", hint, slotted(other, slot),
        left.shape, right.shape, left, right,
    )  # fmt: skip


def slotted(name: str, slot: str) -> str:
    """Return the name of a weight, or that of its state in a slot of the optimizer."""
    return f"optimizer.{name}.{slot}" if slot and name else f"optimizer.{slot}" if slot else name


def _place(key: str) -> dict[str, Any]:
    """Return the layer and the kind of weight of a key."""
    first = key.partition("+")[0]
    words = first.split(".")
    layer = next((int(w) for w in words if w.isdecimal()), None)
    at = next((n for n, w in enumerate(words) if w.isdecimal()), -1)
    kind = ".".join("*" if w.isdecimal() else w for w in words[at + 1 :])
    return {"part": kind, "layer": layer}
