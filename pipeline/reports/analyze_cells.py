"""What is known of each rank in each step, as the map of the HTML report shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..wording import elide, letter

DAMAGE = ("shard_unreadable", "step_incomplete")
WORDS = {"missing": "no record", "unjudged": "cannot tell", "clean": "clean"}


@dataclass(frozen=True)
class Cell:
    """One rank in one step.

    Args:
        state: clean, symptom, missing (no record), unjudged (nothing on record says).
        origin: index of the origin that the first symptom belongs to, if that is known.
        call: where the first symptom is.
        born: indices of the origins in this very cell.
        damaged: only a part of the record could be read.
    """

    state: str = "clean"
    origin: int | None = None
    call: str | None = None
    born: tuple[int, ...] = ()
    damaged: bool = False

    @property
    def looks(self) -> tuple[str, int | None, tuple[int, ...], bool]:
        """Return what is to be seen of the cell without pointing at it."""
        return self.state, self.origin, self.born, self.damaged

    @property
    def signs(self) -> list[str]:
        """Return the signs of the legend that the cell shows."""
        sign = self.state
        if sign == "symptom" and self.origin is None:
            sign = "stray"
        elif sign == "symptom":
            sign = "own" if self.origin in self.born else "reached"
        return [sign] + ["born"] * bool(self.born) + ["hurt"] * self.damaged

    @property
    def style(self) -> str:
        """Return the classes of the cell in the stylesheet."""
        tone = self.origin if self.origin is not None else next(iter(self.born), None)
        return " ".join([*self.signs, *([] if tone is None else [f"t{tone % 8}"])])

    @property
    def mark(self) -> str:
        """Return the letter or sign in the cell beside the origins born there."""
        return {"reached": letter(self.origin or 0), "stray": "?", "unjudged": "?"}.get(
            self.signs[0], ""
        )

    def text(self, place: str, width: int = 400) -> str:
        """Return the whole cell in words."""
        call = elide(self.call or "a call without record", width)
        words = [f"origin {letter(index)} was born here" for index in self.born]
        if self.signs[0] == "own":
            words.append(f"in {call}")
        elif self.origin is not None:
            words.append(f"first symptom in {call}, from origin {letter(self.origin)}")
        elif self.state == "symptom":
            words.append(f"first symptom in {call}, no origin known")
        elif self.state == "missing" or not words:
            words.append(WORDS[self.state])
        words += ["only a part of the record could be read"] if self.damaged else []
        return f"{place}: {', '.join(words)}"


@dataclass(frozen=True)
class Column:
    """One step, or consecutive steps that look alike; `cells` are the ones that are not plain."""

    first: int
    last: int
    cells: Mapping[int, Cell]

    @property
    def label(self) -> str:
        """Return the step, or the first and the last."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def plain_cell(result: Mapping[str, Any]) -> Cell:
    """Return the cell of a rank of which nothing special is known."""
    return Cell("unjudged" if result["verdict"] == "unknown" else "clean")


def columns_of(result: Mapping[str, Any]) -> list[Column]:
    """Return a column for each step, each with the cells that are not plain."""
    plain = plain_cell(result)
    cells: dict[int, dict[int, Cell]] = defaultdict(dict)

    def change(step: int, rank: int, **changes: Any) -> None:
        cells[step][rank] = replace(cells[step].get(rank, plain), **changes)

    for symptom in result["ranks"]:
        call, origin = symptom["first_symptom"]["call"], symptom["origin"]
        change(symptom["step"], symptom["rank"], state="symptom", origin=origin, call=call)
    for warning in result["warnings"]:
        if warning["code"] == "rank_missing":
            change(warning["step"], warning["rank"], state="missing")
        elif warning["code"] in DAMAGE:
            change(warning["step"], warning["rank"], damaged=True)
    for index, origin in enumerate(result["origins"]):
        for rank in {origin["rank"], *(member["rank"] for member in origin.get("members") or ())}:
            born = cells[origin["step"]].get(rank, plain).born
            change(origin["step"], rank, born=(*born, index))
    return [Column(s, s, cells.get(s, {})) for s in sorted({*result["read"]["steps"], *cells})]


def folded(columns: Iterable[Column]) -> list[Column]:
    """Return the columns, neighbours that look alike as one with the calls of the first."""
    kept: list[Column] = []
    before: dict[int, Any] | None = None
    for column in columns:
        looks = {rank: cell.looks for rank, cell in column.cells.items()}
        if looks == before:
            kept[-1] = replace(kept[-1], last=column.last)
        else:
            kept.append(column)
        before = looks
    return kept
