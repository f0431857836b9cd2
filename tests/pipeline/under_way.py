"""How far a run under way has come, seen from outside while its folder changes."""

from __future__ import annotations

import os
from pathlib import Path


def batches_done(work: Path) -> int:
    """Count the batches in a run's unfinished folder that are whole; none when there is no folder.

    One look at the folder alone: a batch that is not whole yet, `<batch>.<token>`, is renamed at
    any moment, so what lies in it cannot be listed.
    """
    try:
        names = os.listdir(work)
    except FileNotFoundError:
        return 0
    return sum(name != "token" and "." not in name for name in names)
