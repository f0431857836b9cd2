"""The map of very many ranks: a field for each step, neighbours that look alike as one rectangle.

Ranks stand in rows of 32 or more, so that nodes and groups of a regular layout show as lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..wording import letter, ranks_text
from .analyze_cells import Cell, Column

PANELS, MARKS, PINS, GAP, CALL_WIDTH = 12, 8000, 64, 22, 60
SIZES = ((1024, 32, 14), (8192, 64, 8), (65536, 128, 6))
"""Ranks up to -> ranks in a row of a field, and the size of a cell in pixels."""

MOST_RANKS = SIZES[-1][0]


@dataclass(frozen=True)
class Mark:
    """Ranks from `first` to `last` in one row of a field, alike in look and first symptom."""

    first: int
    last: int
    cell: Cell

    @property
    def ranks(self) -> str:
        """Return the ranks as `first-last`, or the only one."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def field_view(
    columns: Sequence[Column], ranks: int, plain: Cell
) -> tuple[dict[str, Any], Sequence[Column]]:
    """Return a panel for each column, and the columns that there is no room for.

    Columns with something to see come before plain ones; the first has a panel in any case.
    """
    across, size = next((a, s) for most, a, s in SIZES if ranks <= most)
    panels: dict[int, dict[str, Any]] = {}
    room = MARKS
    for column in sorted(columns, key=lambda c: not c.cells)[:PANELS]:
        marks = _marks(column, ranks, across)
        if panels and len(marks) > room:
            break
        placed = [_placed(mark, column, across, size) for mark in marks]
        panels[column.first] = {
            "label": column.label,
            "tally": _tally(column, ranks, plain),
            "marks": placed,
            "born": "".join(
                f"M{m['x']} {m['y']}h{m['width']}v{size}h-{m['width']}z"
                for m in placed
                if m["letter"]
            ),
            "pins": _pins(placed),
        }
        room -= len(marks)
    drawn = [panels[column.first] for column in columns if column.first in panels]
    left = [column for column in columns if column.first not in panels]
    return {"panels": drawn, **_geometry(ranks, across, size)}, left


def _marks(column: Column, ranks: int, across: int) -> list[Mark]:
    marks: list[Mark] = []
    for rank in sorted(rank for rank in column.cells if rank < ranks):
        cell = column.cells[rank]
        last = marks[-1] if marks else None
        if last and rank == last.last + 1 and rank % across and cell == last.cell:
            marks[-1] = replace(last, last=rank)
        else:
            marks.append(Mark(rank, rank, cell))
    return marks


def _placed(mark: Mark, column: Column, across: int, size: int) -> dict[str, Any]:
    row, place = divmod(mark.first, across)
    where = f"{ranks_text(range(mark.first, mark.last + 1))}, step {column.label}"
    return {
        "style": mark.cell.style,
        "x": place * size,
        "y": row * size,
        "width": (mark.last - mark.first + 1) * size,
        "ranks": mark.ranks,
        "text": mark.cell.text(where, CALL_WIDTH),
        "letter": letter(mark.cell.born[0]) if mark.cell.born else "",
    }


def _pins(placed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return origins that get their letter: far enough from each other not to hide one another."""
    pins: list[dict[str, Any]] = []
    for mark in placed:
        near = (p for p in pins if abs(p["x"] - mark["x"]) < GAP and mark["y"] - p["y"] < GAP)
        if mark["letter"] and len(pins) < PINS and not any(near):
            pins.append(mark)
    return pins


def _tally(column: Column, ranks: int, plain: Cell) -> str:
    """Return how many ranks of a step look like what, the most frequent first."""
    words = {"missing": "without record", "unjudged": "cannot tell", "clean": "clean"}
    found = Counter((cell.state, cell.origin) for cell in column.cells.values())
    found[plain.state, None] += ranks - len(column.cells)
    texts = []
    for (state, origin), ranks_in in found.most_common():
        of = "of no known origin" if origin is None else f"of origin {letter(origin)}"
        texts.append(f"{ranks_in:,} {of if state == 'symptom' else words[state]}")
    return ", ".join(text for text in texts if not text.startswith("0 "))


def _geometry(ranks: int, across: int, size: int) -> dict[str, Any]:
    """Return the outline of all ranks, the lines between cells, and the numbers at the edges."""
    rows, rest = divmod(ranks, across)
    width, height = across * size, (rows + bool(rest)) * size
    tick = 8 if rows > 8 else 1
    return {
        "size": size,
        "width": width,
        "height": height,
        "ground": f"M0 0H{width}V{rows * size}H{rest * size}V{height}H0z",
        "lines": "".join(
            [f"M{x} 0V{height}" for x in range(size, width, size)]
            + [f"M0 {y}H{width}" for y in range(size, height, size)]
        ),
        "ticks": [(y // size * across, y + size / 2 + 3.5) for y in range(0, height, size * tick)],
        "heads": [(x * size, f"+{x}") for x in range(0, across, across // 4)],
    }
