"""Small pieces of text that the terminal and the reports write the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def letter(index: int) -> str:
    """Return the letters that the origin at `index` goes by: A to Z, then AA, AB, ..."""
    text, rest = "", index + 1
    while rest:
        rest, place = divmod(rest - 1, 26)
        text = chr(ord("A") + place) + text
    return text


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it has to be: `1 rank`, `4,096 ranks`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return first and last of every run of consecutive numbers, in order."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def ranges(numbers: Iterable[int], shown: int = 24) -> str:
    """Return numbers as `0-3, 7`; after `shown` runs only how many numbers more there are."""
    found = runs(numbers)
    texts = [str(a) if a == b else f"{a}-{b}" if b > a + 1 else f"{a}, {b}" for a, b in found]
    rest = sum(b - a + 1 for a, b in found[shown:])
    return ", ".join(texts[:shown]) + (f" and {rest:,} more" if rest else "")


def ranks_text(ranks: Iterable[int], shown: int = 24) -> str:
    """Return `rank 3` or `ranks 0-3, 7`."""
    numbers = set(ranks)
    return f"rank{'' if len(numbers) == 1 else 's'} {ranges(numbers, shown)}"


def closing(warnings: Sequence[Mapping[str, Any]], shown: int, out: Path | None) -> list[str]:
    """Return the last lines of an answer: the first `shown` warnings, and where the report is."""
    lines = [f"warning: {w['code']}: {w['text']}" for w in warnings[:shown]]
    if len(warnings) > shown:
        lines.append(f"... and {len(warnings) - shown} more in result.json")
    lines = ["", *lines] if lines else []
    return lines + (["", f"report: {out}/report.html"] if out else [])


def elide(text: str, width: int) -> str:
    """Return the text in at most `width` characters, the middle left out if it has more."""
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


def number(value: Any) -> str:
    """Return a number in six digits, a word such as `inf` as it is, nothing for None."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)
