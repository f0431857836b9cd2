"""The way of one origin's value from rank to rank, as lanes with arrows between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from ..wording import count, elide, ranges, ranks_text

LANES = 24
TOP, PITCH, FOOT = 44, 40, 16
GUTTER, LABEL_WIDTH = 300, 40
LANE_PITCH = ((4, 68), (8, 56), (14, 48), (LANES, 34))
"""Lanes up to -> pixels between two of them."""


@dataclass(frozen=True)
class Hop:
    """A value handed from one rank to another.

    Args:
        call: the giver's call; None when the giver left no record of it.
        arrives: the receiver's call; None when the receiver left no record of it.
        step: the later step whose weights brought it, None when a communication call did.
    """

    giver: int
    receiver: int
    call: str | None
    arrives: str | None
    step: int | None

    @property
    def line(self) -> str:
        """Return how it is drawn: dotted through weights, dashed where an end left no record."""
        if self.step is not None:
            return "dotted"
        return "dashed" if self.call is None or self.arrives is None else ""

    @property
    def text(self) -> str:
        """Return the hop in words."""
        text = f"rank {self.giver} to rank {self.receiver}"
        if self.step is not None:
            return f"{text}: bad weights, first read in step {self.step} by {self.arrives}"
        seen = self.call or f"no record of it on rank {self.giver}"
        if self.arrives is None:
            return f"{text}: {seen}, no record of it on rank {self.receiver}"
        return f"{text}: {seen}" + ("" if self.arrives == self.call else f", as {self.arrives}")


@dataclass
class Row:
    """One call of a giver, with the hops to all that got the value by it."""

    y: int
    hops: list[Hop]

    @property
    def name(self) -> str:
        """Return the call that stands for the row."""
        first = self.hops[0]
        return (first.arrives if first.step is not None else first.call or first.arrives) or "?"

    @property
    def label(self) -> str:
        """Return the call, as much of it as fits."""
        return elide(self.name, LABEL_WIDTH)

    @property
    def note(self) -> str:
        """Return who gave it to whom, and what is known of the call at the other end."""
        first = self.hops[0]
        text = f"rank {first.giver} to {ranges((h.receiver for h in self.hops), 4)}"
        if first.step is not None:
            return f"{text}, weights of step {first.step}"
        if first.call is None:
            return f"{text}, no record on rank {first.giver}"
        if any(hop.arrives is None for hop in self.hops):
            return f"{text}, no record of its arrival"
        names = sorted({h.arrives for h in self.hops if h.arrives} - {self.name})
        room = max(16, LABEL_WIDTH + 4 - len(text))
        more = ", ..." if len(names) > 1 else ""
        return f"{text}, as {elide(names[0], room)}{more}" if names else text


@dataclass
class Diagram:
    """One origin's lanes and rows; no lanes when the value stayed where it was born.

    Args:
        bad_from: rank -> where on its lane the value arrived.
        unseen: ranks that left no record.
        notes: what is not drawn, in sentences.
    """

    index: int
    lanes: dict[int, int]
    rows: list[Row]
    born: list[int]
    bad_from: dict[int, int]
    unseen: set[int]
    where: str
    call: str
    notes: list[str]

    top: ClassVar[int] = TOP
    gutter: ClassVar[int] = GUTTER

    @property
    def born_at(self) -> list[int]:
        """Return the ranks drawn on which the value was born."""
        return [rank for rank in self.born if rank in self.lanes]

    @property
    def label(self) -> str:
        """Return the call it was born in, as much of it as fits."""
        return elide(self.call, LABEL_WIDTH)

    @property
    def birth(self) -> str:
        """Return where it was born."""
        where = ranks_text(self.born, 4)
        return f"{where}, no record" if self.unseen & set(self.born) else f"born on {where}"

    @property
    def lines(self) -> set[str]:
        """Return which lines need words: dashed, dotted."""
        lines = {hop.line for row in self.rows for hop in row.hops}
        return lines | ({"dashed"} if self.unseen & set(self.lanes) else set())

    @property
    def width(self) -> int:
        """Return the width in pixels."""
        return max(self.lanes.values()) + 28

    @property
    def height(self) -> int:
        """Return the height in pixels."""
        return TOP + PITCH * (len(self.rows) + 1) + FOOT

    @property
    def words(self) -> str:
        """Return the whole drawing in words."""
        born = f"Born on {ranks_text(self.born)} in {self.call}."
        return " ".join([born, *(f"{hop.text}." for row in self.rows for hop in row.hops)])


def diagram(result: Mapping[str, Any], index: int) -> Diagram:
    """Return the drawing of the origin at `index`, the nearest ranks first if they are too many."""
    origin = result["origins"][index]
    members = [member["rank"] for member in origin.get("members") or ()]
    born = sorted({origin["rank"], *members})
    arrivals = _arrivals(result, index, set(born))
    shown = born[:LANES]
    drawn: list[tuple[Mapping[str, Any], list[Hop]]] = []
    for symptom, hops in arrivals:
        lanes = {*shown, symptom["rank"], *(h.giver for h in hops), *(h.receiver for h in hops)}
        if len(lanes) <= LANES:
            shown = sorted(lanes)
            drawn.append((symptom, hops))
    rows = _rows(drawn)
    bad_from = dict.fromkeys(shown, TOP)
    for row in reversed(rows):
        bad_from |= {hop.receiver: row.y for hop in row.hops}
    bad_from |= {rank: TOP for rank in born if rank in bad_from}
    alone = len(shown) == 1
    return Diagram(
        index=index,
        lanes={} if alone else _placed(shown),
        rows=rows,
        born=born,
        bad_from=bad_from,
        unseen=_unseen(result, origin),
        where=f"rank {origin['rank']}, step {origin['step']}",
        call=origin["call"] or "a call without record",
        notes=_notes(result, index, born, {s["rank"] for s, _ in arrivals}, set(shown)),
    )


def _arrivals(
    result: Mapping[str, Any], index: int, born: set[int]
) -> list[tuple[Mapping[str, Any], list[Hop]]]:
    """Return each rank's first symptom of the origin with the hops to it, nearest rank first."""
    first: dict[int, Mapping[str, Any]] = {}
    for symptom in result["ranks"]:
        rank = symptom["rank"]
        known = first.get(rank)
        if symptom["origin"] != index or not symptom["path"] or rank in born:
            continue
        if known is None or symptom["step"] < known["step"]:
            first[rank] = symptom
    arrivals = [(symptom, _hops(symptom["path"])) for symptom in first.values()]
    return sorted(arrivals, key=lambda a: (a[0]["step"], len(a[1]), a[0]["rank"]))


def _hops(path: Sequence[Mapping[str, Any]]) -> list[Hop]:
    hops = []
    for giver, receiver in pairwise(path):
        if giver["rank"] != receiver["rank"]:
            later = receiver.get("step") if receiver.get("step") != giver.get("step") else None
            hops.append(
                Hop(giver["rank"], receiver["rank"], giver["call"], receiver["call"], later)
            )
    return hops


def _rows(drawn: Iterable[tuple[Mapping[str, Any], list[Hop]]]) -> list[Row]:
    """Return a row for each call that handed the value on: givers near the origin first.

    Of one giver the calls stand in the order in which its receivers show the value.
    """
    groups: dict[tuple[Any, ...], dict[int, Hop]] = {}
    order: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for symptom, hops in drawn:
        for depth, hop in enumerate(hops):
            key = (depth, hop.giver, hop.call or hop.arrives, hop.step)
            groups.setdefault(key, {})[hop.receiver] = hop
            place = (symptom["step"], depth, hop.giver, symptom["first_symptom"]["seq"] or 0)
            order[key] = min(order.get(key, place), place)
    rows = [list(groups[key].values()) for key in sorted(groups, key=lambda key: order[key])]
    return [Row(TOP + PITCH * place, hops) for place, hops in enumerate(rows, 1)]


def _placed(ranks: Sequence[int]) -> dict[int, int]:
    pitch = next(pixels for lanes, pixels in LANE_PITCH if len(ranks) <= lanes)
    return {rank: GUTTER + pitch // 2 + pitch * place for place, rank in enumerate(ranks)}


def _unseen(result: Mapping[str, Any], origin: Mapping[str, Any]) -> set[int]:
    missing = {
        warning["rank"]
        for warning in result["warnings"]
        if warning["code"] == "rank_missing" and warning["step"] == origin["step"]
    }
    return missing | ({origin["rank"]} if origin["kind"] == "unrecorded" else set())


def _notes(
    result: Mapping[str, Any], index: int, born: list[int], arrived: set[int], shown: set[int]
) -> list[str]:
    """Return in sentences what the drawing leaves out."""
    origin = result["origins"][index]
    notes = []
    others = (set(origin["reached"]) & {r["rank"] for r in result["ranks"]}) - arrived - set(born)
    if len(born) == 1 and not arrived and not others:
        notes.append(f"It stayed on rank {origin['rank']}.")
    left = len({*born, *arrived} - shown)
    if left:
        notes.append(f"{count(left, 'more rank')} not drawn; the nearest are shown.")
    if others:
        whose = "its first symptom is" if len(others) == 1 else "their first symptoms are"
        word = "Also reached" if arrived else "Reached"
        notes.append(f"{word}: {ranks_text(others)}; {whose} of another origin.")
    later = sorted(
        {r["step"] for r in result["ranks"] if r["origin"] == index and r["step"] > origin["step"]}
    )
    if later:
        steps = f"Step {later[0]}" if len(later) == 1 else f"Steps {later[0]} to {later[-1]}"
        notes.append(f"{steps} began with what it left in the weights.")
    return notes
