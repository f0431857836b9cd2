"""Which of some calls on several ranks came first, as far as communication orders them.

A logical clock (Lamport 1978, "Time, clocks, and the ordering of events in a distributed system"):
a collective is one moment for all of its members, one later than what any of them did before.
"""

from __future__ import annotations

from collections import defaultdict

from .base import Row


def earliest(moments: list[Row], calls: list[Row]) -> Row:
    """Return the earliest of some calls of one step; the lowest rank's of those at one moment.

    Args:
        moments: step, rank, seq, instance of every communication operation, in order.
        calls: rows with step, rank, seq.
    """
    step = calls[0]["step"]
    times = _times([row for row in moments if row["step"] == step])

    def moment(call: Row) -> tuple[int, int, int]:
        past = [time for seq, time in times[call["rank"]] if seq < call["seq"]]
        return (past[-1] if past else 0), call["rank"], call["seq"]

    return min(calls, key=moment)


def _times(moments: list[Row]) -> dict[int, list[tuple[int, int]]]:
    """Return rank -> (seq, time) of its communication operations, in order."""
    waiting: dict[int, list[Row]] = defaultdict(list)  # what each rank has yet to do, next one last
    members: dict[str, set[int]] = defaultdict(set)
    for row in reversed(moments):
        waiting[row["rank"]].append(row)
        members[row["instance"]].add(row["rank"])
    clock: dict[int, int] = defaultdict(int)
    times: dict[int, list[tuple[int, int]]] = defaultdict(list)
    while any(waiting.values()):
        heads = {rank: rows[-1]["instance"] for rank, rows in waiting.items() if rows}
        ready = {
            instance
            for instance in heads.values()
            if all(heads.get(rank) == instance for rank in members[instance])
        }
        # ranks that disagree about the order of their calls: one goes on alone
        for instance in ready or {heads[min(heads)]}:
            there = [rank for rank, head in heads.items() if head == instance]
            time = 1 + max(clock[rank] for rank in there)
            for rank in there:
                clock[rank] = time
                times[rank].append((waiting[rank].pop()["seq"], time))
            members[instance] -= set(there)
    return times
