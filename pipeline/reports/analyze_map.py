"""The map of first symptoms, rank by step, as the template draws it.

Few ranks are a grid of cells with letters; very many are one field for each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..wording import count, ranks_text
from .analyze_cells import Cell, Column, columns_of, folded, plain_cell
from .analyze_field import MOST_RANKS, field_view

GRID_RANKS, GRID_STEPS, GRID_CELLS = 256, 60, 4096
BLOCK_ROWS = 16
UNFOLDED_STEPS = {"grid": 16, "field": 4}

LEGEND = {
    "born": "an origin: the value was born here",
    "reached": "first symptom, of the origin with this letter",
    "stray": "first symptom, no origin known",
    "missing": "no record of the rank",
    "hurt": "only a part of the record could be read",
    "clean": "clean",
    "unjudged": "cannot tell: nothing on record says",
}


def map_view(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the template of the map needs; None when no step or no rank is known of."""
    plain, columns = plain_cell(result), columns_of(result)
    known = [result["read"]["expected"], *(max(c.cells) + 1 for c in columns if c.cells)]
    ranks = min(max(known), MOST_RANKS)
    if not columns or not ranks:
        return None
    kind = "field" if ranks > GRID_RANKS else "grid"
    if len(columns) > UNFOLDED_STEPS[kind]:
        columns = folded(columns)
    if ranks * min(len(columns), GRID_STEPS) > GRID_CELLS:
        kind = "field"
    signs = {sign for c in columns for cell in c.cells.values() for sign in cell.signs}
    legend = [(sign, LEGEND[sign]) for sign in LEGEND if sign in signs | {plain.state}]
    draw = _grid if kind == "grid" else field_view
    drawn, left = draw(columns, ranks, plain)
    view = {"kind": kind, "ranks": ranks, "plain": plain.state, "legend": legend}
    return view | drawn | {"left_out": _left_out(left)}


def _grid(
    columns: Sequence[Column], ranks: int, plain: Cell
) -> tuple[dict[str, Any], Sequence[Column]]:
    """Return blocks of rows with their cells, and the columns there is no room for."""
    shown = columns[:GRID_STEPS]
    starts = range(0, ranks, BLOCK_ROWS)
    blocks = [range(first, min(first + BLOCK_ROWS, ranks)) for first in starts]
    view = {
        "columns": shown,
        "blocks": [
            {
                "ranks": ranks_text(block),
                "rows": [
                    {"rank": rank, "cells": [_grid_cell(rank, column, plain) for column in shown]}
                    for rank in block
                ],
            }
            for block in blocks
        ],
    }
    return view, columns[GRID_STEPS:]


def _grid_cell(rank: int, column: Column, plain: Cell) -> dict[str, Any]:
    cell = column.cells.get(rank, plain)
    text = cell.text(f"rank {rank}, step {column.label}")
    return {"step": column.label, "cell": cell, "text": text}


def _left_out(columns: Sequence[Column]) -> str:
    """Return which columns are not drawn, nothing when all are."""
    if not columns:
        return ""
    bad = sum(1 for c in columns if any(cell.state == "symptom" for cell in c.cells.values()))
    return (
        f"Not drawn: {count(len(columns), 'more column')}, between step {columns[0].first} and "
        f"{columns[-1].last}; {bad} of them with symptoms. All are in result.json."
    )
