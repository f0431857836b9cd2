"""The layout rules of each family, read from layouts/*.yaml, and what they make of a tensor.

A rule says by which parts a tensor is known in all families, and how it is made of them. Parts are
the weights one would write down: q, k and v, gate and up, one expert.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import ReadError
from .tensors import Tensor, cut, joined, selected

FOLDER = Path(__file__).resolve().parent / "layouts"

PLACES = {"layer": r"\d+", "expert": r"\d+", "proj": r"\w+", "p": r"(?!layer_norm_)[A-Za-z_]+"}

OUTER = re.compile(r"^(?:(?:module|model|state_dict|base_model|_orig_mod|_fsdp_wrapped_module)\.)+")
WRAPPERS = re.compile(
    r"(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\."
)
"""Words that a wrapper put into names: torch.compile, FSDP, activation checkpointing, DDP."""

Parts = list[tuple[str, Tensor]]


@dataclass(frozen=True)
class Rule:
    """One rule of a family.

    Args:
        pattern: of the names it is for.
        parts: names of the parts, with the places of the pattern.
        layout: how the tensor is made of them; one of `LAYOUTS`.
        split: how tensor parallelism splits it: `rows`, `columns`, `copy`.
    """

    pattern: re.Pattern[str]
    parts: tuple[str, ...]
    layout: str = "one"
    split: str = ""


@dataclass(frozen=True)
class Family:
    """The rules of one family."""

    renames: tuple[tuple[re.Pattern[str], str], ...]
    spellings: Mapping[str, str]
    rules: tuple[Rule, ...]

    def renamed(self, name: str) -> str:
        """Return a name in the family's present spelling."""
        for pattern, text in self.renames:
            name = pattern.sub(text, name)
        return name

    def find(self, name: str) -> tuple[Rule, dict[str, str]] | None:
        """Return the rule for a name, and what stands at its places."""
        short = _short(name)
        for rule in self.rules:
            match = rule.pattern.fullmatch(name) or rule.pattern.fullmatch(short)
            if match:
                return rule, match.groupdict()
        return None

    def shared_name(self, name: str) -> str:
        """Return the name of a tensor without a rule, as all families know it."""
        head, dot, last = _short(name).rpartition(".")
        return head + dot + self.spellings.get(last, last)

    def key(self, name: str) -> str:
        """Return by what a whole tensor is known: the names of its parts."""
        found = self.find(name)
        if not found:
            return self.shared_name(name)
        rule, places = found
        return "+".join(_filled(part, {"expert": "*", **places}) for part in rule.parts)

    def parts(self, name: str, tensor: Tensor, config: Mapping[str, Any]) -> Parts:
        """Return the parts of a tensor with their names; itself where nothing is known of it."""
        found = self.find(name)
        if not found:
            return [(self.shared_name(name), tensor)]
        rule, places = found
        made = LAYOUTS[rule.layout](tensor, config)
        if not made:
            return [(self.key(name), tensor)]
        names = rule.parts[-len(made[0]) :]
        many = "expert" not in places and len(made) > 1
        return [
            (
                _filled(
                    part, {**places, "expert": str(row)} if many else {"expert": "0", **places}
                ),
                t,
            )
            for row, tensors in enumerate(made)
            for part, t in zip(names, tensors, strict=True)
        ]


def _short(name: str) -> str:
    return OUTER.sub("", WRAPPERS.sub("", name))


def _filled(part: str, places: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: places[match[1]], part)


@cache
def family(name: str, extra: str = "") -> Family:
    """Return the rules of a family, with those of a user's file before them.

    Raises:
        ReadError: a rule does not make sense.
    """
    tables = [_table(Path(extra))] if extra else []
    tables.append(_table(FOLDER / f"{name}.yaml"))
    return Family(
        tuple((re.compile(a), b) for table in tables for a, b in table.get("renames", ())),
        {k: v for table in reversed(tables) for k, v in table.get("spellings", {}).items()},
        tuple(_rule(rule) for table in tables for rule in table.get("rules", ())),
    )


def _table(path: Path) -> dict[str, Any]:
    try:
        table = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ReadError(f"{path}: the layout rules cannot be read ({error})") from None
    if not isinstance(table, dict) or set(table) - {"renames", "spellings", "rules"}:
        raise ReadError(f"{path}: expected a mapping of renames, spellings and rules")
    return table


def _rule(given: Any) -> Rule:
    if not isinstance(given, dict) or not {"name", "parts"} <= set(given):
        raise ReadError(f"layout rule {given}: expected at least name and parts")
    layout, split = given.get("layout", "one"), given.get("split", "")
    if layout not in LAYOUTS or split not in ("", "rows", "columns", "copy"):
        raise ReadError(
            f"layout rule {given['name']}: layout is one of {', '.join(LAYOUTS)}; "
            "split is rows, columns or copy"
        )
    pattern = re.escape(given["name"])
    for place, text in PLACES.items():
        pattern = pattern.replace(rf"\{{{place}\}}", f"(?P<{place}>{text})")
    return Rule(re.compile(pattern), tuple(given["parts"]), layout, split)


def _one(tensor: Tensor, config: Mapping[str, Any]) -> list[list[Tensor]]:
    return [[tensor]]


def _halves(tensor: Tensor, config: Mapping[str, Any]) -> list[list[Tensor]]:
    """Gate above up."""
    rows = tensor.shape[0] if tensor.shape else 1
    if rows % 2:
        return []
    return [[cut(tensor, 0, rows // 2), cut(tensor, rows // 2, rows)]]


def _halves_if_gated(tensor: Tensor, config: Mapping[str, Any]) -> list[list[Tensor]]:
    return _halves(tensor, config) if config.get("gated") else [[tensor]]


def _qkv_groups(tensor: Tensor, config: Mapping[str, Any]) -> list[list[Tensor]]:
    """For each group of query heads: their rows, the rows of its key, those of its value."""
    heads, groups, size = _attention(config)
    if not heads or not tensor.shape or tensor.shape[0] != (heads + 2 * groups) * size:
        return []
    queries = heads // groups * size
    step, q, k, v = queries + 2 * size, [], [], []
    for start in range(0, tensor.shape[0], step):
        q.append(cut(tensor, start, start + queries))
        k.append(cut(tensor, start + queries, start + queries + size))
        v.append(cut(tensor, start + queries + size, start + step))
    return [[joined(q), joined(k), joined(v)]]


def _qkv_blocks(tensor: Tensor, config: Mapping[str, Any]) -> list[list[Tensor]]:
    """All queries above all keys above all values."""
    heads, groups, size = _attention(config)
    if not heads or not tensor.shape or tensor.shape[0] != (heads + 2 * groups) * size:
        return []
    q, k = heads * size, groups * size
    return [[cut(tensor, 0, q), cut(tensor, q, q + k), cut(tensor, q + k, q + 2 * k)]]


def _attention(config: Mapping[str, Any]) -> tuple[int, int, int]:
    heads, groups, size = (config.get(key) or 0 for key in ("heads", "groups", "head_dim"))
    return (heads, groups, size) if heads and groups and size else (0, 0, 0)


def _experts(tensor: Tensor, config: Mapping[str, Any]) -> list[list[Tensor]]:
    return [[selected(tensor, n)] for n in range(tensor.shape[0] if len(tensor.shape) > 1 else 0)]


def _experts_of_halves(tensor: Tensor, config: Mapping[str, Any]) -> list[list[Tensor]]:
    found = [_halves(expert, config) for (expert,) in _experts(tensor, config)]
    return [halves for made in found for halves in made] if all(found) else []


LAYOUTS: dict[str, Callable[[Tensor, Mapping[str, Any]], list[list[Tensor]]]] = {
    "one": _one,
    "halves": _halves,
    "halves if gated": _halves_if_gated,
    "qkv groups": _qkv_groups,
    "qkv blocks": _qkv_blocks,
    "experts": _experts,
    "experts of halves": _experts_of_halves,
}
"""Layout -> rows of parts: one row, or one an expert; empty where the model's facts are missing."""
