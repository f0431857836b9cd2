"""How much of the machine one run may take."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_CGROUP_MEMORY = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CGROUP_CPU = "/sys/fs/cgroup/cpu.max"


@dataclass(frozen=True)
class Limits:
    """What a worker may use.

    Args:
        threads: CPU threads of its DuckDB.
        memory_mb: memory of its DuckDB in MiB; beyond it, it spills to disk.
    """

    threads: int
    memory_mb: int


def cpu_count() -> int:
    """Return the CPUs this process may use: the container's quota, or what it is pinned to."""
    pinned = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota, _, period = _first_line(_CGROUP_CPU).partition(" ")
    if quota.isdecimal() and period.isdecimal():
        return max(1, min(pinned or 1, int(quota) // int(period)))
    return pinned or 1


def memory_mb() -> int:
    """Return the memory this process may use in MiB: the container's limit, or the machine's."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [int(line) for path in _CGROUP_MEMORY if (line := _first_line(path)).isdecimal()]
    return min([machine, *limits]) // 2**20


def limits(workers: int, *, memory: int | None = None) -> Limits:
    """Return each worker's share; half of the memory is left to Python and Arrow.

    Args:
        workers: how many run at the same time.
        memory: MiB for all of them together; default: what the container has.
    """
    total = memory or memory_mb()
    return Limits(
        threads=max(1, cpu_count() // workers), memory_mb=max(256, total // (2 * workers))
    )


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().splitlines()[0].strip()
    except (OSError, IndexError):
        return ""
