"""Charts as the templates draw them: lines, bars, and maps of cells; plain SVG and HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..wording import number

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760.0, 220.0, 64.0, 34.0, 8.0
TICKS = 5


@dataclass(frozen=True)
class Series:
    """One line of a chart.

    Args:
        name: as the legend has it.
        points: x and y, in the order of x; a y that is not finite (or not above 0, where the axis
            is logarithmic) breaks the line.
        band: x, lowest and highest y, drawn behind the line; may be empty.
        tone: one of eight colours, 0 to 7.
    """

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    tone: int = 0


@dataclass(frozen=True)
class HeatCell:
    """One cell of a heat map.

    Args:
        share: 0 (nothing) to 1 (the worst); None: nothing is known.
        text: in the cell; short.
        tip: what a pointer over the cell tells.
        link: id of a part of the page, or nothing.
    """

    share: float | None
    text: str = ""
    tip: str = ""
    link: str = ""


def line_chart(
    series: Sequence[Series], *, x_label: str, y_label: str, log: bool = False
) -> dict[str, Any]:
    """Return what the macro `line_chart` draws.

    Args:
        series: at most eight.
        x_label: of the axis.
        y_label: of the axis.
        log: whether y is on a logarithmic axis.
    """
    xs = [x for line in series for x, *_ in (*line.points, *line.band)]
    ys = [y for line in series for _, *values in (*line.points, *line.band) for y in values]
    x_axis = Axis.over(xs, LEFT, WIDTH, log=False)
    y_axis = Axis.over(ys, HEIGHT - BOTTOM, TOP, log=log)
    return {
        **_frame(x_label, y_label, y_axis),
        "x_ticks": [(round(x_axis.place(x), 1), number(x)) for x in x_axis.ticks()],
        "series": [
            {
                "name": line.name,
                "tone": line.tone,
                "path": _path(line.points, x_axis, y_axis),
                "band": _band(line.band, x_axis, y_axis),
                "dots": [
                    (*_spot(x, y, x_axis, y_axis), f"{line.name}: {number(x)}, {number(y)}")
                    for x, y in line.points
                    if len(line.points) <= 200 and y_axis.shows(y)
                ],
            }
            for line in series
        ],
    }


def bar_chart(
    bars: Sequence[tuple[str, float]], *, x_label: str, y_label: str, log: bool = False
) -> dict[str, Any]:
    """Return what the macro `bar_chart` draws; a bar is its label and its height, from 0 on."""
    floor = 0.5 if log else 0.0
    y_axis = Axis.over([floor, *(y for _, y in bars)], HEIGHT - BOTTOM, TOP, log=log)
    step = (WIDTH - LEFT) / max(1, len(bars))
    every = math.ceil(len(bars) / 12) or 1
    return {
        **_frame(x_label, y_label, y_axis),
        "x_ticks": [
            (round(LEFT + (place + 0.5) * step, 1), label)
            for place, (label, _) in enumerate(bars)
            if place % every == 0
        ],
        "bars": [
            {
                "x": round(LEFT + place * step + 1, 1),
                "y": round(y_axis.place(max(y, floor)), 1),
                "width": round(max(1.0, step - 2), 1),
                "height": round(HEIGHT - BOTTOM - y_axis.place(max(y, floor)), 1),
                "tip": f"{label}: {number(y)}",
            }
            for place, (label, y) in enumerate(bars)
        ],
    }


def heat_map(
    columns: Sequence[str], rows: Iterable[tuple[str, Sequence[HeatCell]]]
) -> dict[str, Any]:
    """Return what the macro `heat_map` draws: rows with a label and a cell for each column."""
    return {
        "columns": list(columns),
        "rows": [
            (
                label,
                [
                    {
                        "percent": None if cell.share is None else round(100 * cell.share),
                        "text": cell.text,
                        "tip": cell.tip,
                        "link": cell.link,
                    }
                    for cell in cells
                ],
            )
            for label, cells in rows
        ],
    }


@dataclass(frozen=True)
class Axis:
    """Maps values between `low` and `high` to pixels between `start` and `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, *, log: bool) -> Axis:
        """Return an axis that shows every finite value; logarithmic ones only above 0."""
        shown = [v for v in values if math.isfinite(v) and (not log or v > 0)]
        low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
        if log:
            low, high = 10.0 ** math.floor(math.log10(low or 1)), high or 1.0
        if high == low:
            high = low * 10 if log else low + 1
        return cls(low, high, start, end, log)

    def shows(self, value: float) -> bool:
        """Tell whether a value has a place."""
        return math.isfinite(value) and (not self.log or value > 0)

    def place(self, value: float) -> float:
        """Return the pixel of a value that has one."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return a few round values; powers of ten on a logarithmic axis."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            every = (last - first) // TICKS + 1
            return [10.0**power for power in range(first, last + 1, every)]
        rough = (self.high - self.low) / TICKS
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        first = math.ceil(self.low / step)
        return [step * n for n in range(first, math.floor(self.high / step) + 1)]


def _frame(x_label: str, y_label: str, y_axis: Axis) -> dict[str, Any]:
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "floor": HEIGHT - BOTTOM,
        "x_label": x_label,
        "y_label": y_label,
        "y_ticks": [(round(y_axis.place(y), 1), number(y)) for y in y_axis.ticks()],
    }


def _spot(x: float, y: float, x_axis: Axis, y_axis: Axis) -> tuple[float, float]:
    return round(x_axis.place(x), 1), round(y_axis.place(y), 1)


def _path(points: Sequence[tuple[float, float]], x_axis: Axis, y_axis: Axis) -> str:
    """Return an SVG path with a break where a value has no place."""
    pieces, pen = [], "M"
    for x, y in points:
        if not y_axis.shows(y):
            pen = "M"
            continue
        left, top = _spot(x, y, x_axis, y_axis)
        pieces.append(f"{pen}{left} {top}")
        pen = "L"
    return "".join(pieces)


def _band(band: Sequence[tuple[float, float, float]], x_axis: Axis, y_axis: Axis) -> str:
    """Return the SVG path around a band; without the parts that have no place."""
    shown = [(x, low, high) for x, low, high in band if y_axis.shows(low) and y_axis.shows(high)]
    if not shown:
        return ""
    around = [_spot(x, low, x_axis, y_axis) for x, low, _ in shown]
    around += [_spot(x, high, x_axis, y_axis) for x, _, high in reversed(shown)]
    return "M" + "L".join(f"{left} {top}" for left, top in around) + "Z"
