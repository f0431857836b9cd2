"""Reads the collector's config.json: the incumbent's file, unchanged."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import CrossrankError

HONOURED = {"task", "dump_path", "rank", "step", "level"}
TASKS, LEVELS = ("statistics",), ("L1",)


class ConfigError(CrossrankError):
    """A configuration that cannot be followed."""


@dataclass(frozen=True)
class Config:
    """What to collect.

    Args:
        dump_path: folder of the dump.
        ranks: only these; empty: all.
        steps: only these; empty: all.
        raw: the file as it stands, for the record.
    """

    dump_path: Path
    ranks: frozenset[int] = frozenset()
    steps: frozenset[int] = frozenset()
    raw: Mapping[str, Any] | None = None

    def wants(self, rank: int, step: int) -> bool:
        """Tell whether a step of a rank is collected."""
        return (not self.ranks or rank in self.ranks) and (not self.steps or step in self.steps)


def read_config(path: str | Path | None, **overrides: Any) -> Config:
    """Return the configuration of a file; arguments that are given stand above it.

    Args:
        path: of config.json; None: arguments alone.
        overrides: task, dump_path, level, step, rank; None leaves the file's value.

    Raises:
        ConfigError: it cannot be read, or asks for what there is not.
    """
    raw = _read(Path(path)) if path else {}
    raw = {**raw, **{key: value for key, value in overrides.items() if value is not None}}
    where = str(path) if path else "the arguments"
    place = raw.get("dump_path")
    if not place or not isinstance(place, (str, Path)):
        raise ConfigError(f"{where}: dump_path is missing; name a folder for the dump")
    if Path(place).is_file():
        raise ConfigError(f"{where}: dump_path {place} is a file; name a folder for the dump")
    _choice(where, "task", raw.get("task", "statistics"), TASKS)
    _choice(where, "level", raw.get("level", "L1"), LEVELS)
    _tell_of_ignored(where, raw)
    return Config(
        dump_path=Path(place),
        ranks=_numbers(where, "rank", raw.get("rank")),
        steps=_numbers(where, "step", raw.get("step")),
        raw=raw,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected an object, {{...}}, got {type(content).__name__}")
    return content


def _choice(where: str, key: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        expected = ", ".join(known)
        raise ConfigError(f"{where}: {key} {value!r} is not collected yet; expected {expected}")


def _numbers(where: str, key: str, value: Any) -> frozenset[int]:
    """Return the numbers of a list whose items are 3, "3" or "4-6"."""
    found: set[int] = set()
    if value is None or value == "":
        return frozenset()
    for item in value if isinstance(value, (list, tuple)) else [value]:
        first, dash, last = str(item).strip().partition("-")
        wrong = not _is_number(first) or (dash and not _is_number(last))
        if wrong or (dash and int(last) < int(first)):
            raise ConfigError(f'{where}: {key} {item!r}; expected a number, or "4-6"')
        found |= set(range(int(first), int(last if dash else first) + 1))
    return frozenset(found)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _tell_of_ignored(where: str, raw: Mapping[str, Any]) -> None:
    section = raw.get(raw.get("task", "statistics"))
    details = section if isinstance(section, Mapping) else {}
    ignored = [key for key in raw if key not in HONOURED and key != "statistics"]
    ignored += [
        f"statistics.{key}" for key, value in details.items() if not _is_default(key, value)
    ]
    if ignored:
        warnings.warn(f"{where}: not honoured yet: {', '.join(sorted(ignored))}", stacklevel=4)


def _is_default(key: str, value: Any) -> bool:
    return not value or value in (["all"], "all") or (key, value) == ("summary_mode", "statistics")
