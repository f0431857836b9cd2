"""One store for each thread of a worker, from one task to the next.

Memory that a database has touched is used again by the next task; a database that is closed gives
it back, and touching new memory takes a sixth of the time of a task.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .settings import Limits
from .store import Store


class _Thread(threading.local):
    """What a thread keeps while nobody has it."""

    kept: tuple[Limits, Store] | None = None


_here = _Thread()


@contextmanager
def lent(limits: Limits, params: Mapping[str, Any]) -> Iterator[Store]:
    """Lend this thread's store, empty; one that failed is not lent again.

    Args:
        limits: what it may use.
        params: values for the parameters of all questions.
    """
    kept, _here.kept = _here.kept, None
    store = kept[1] if kept and kept[0] == limits else Store(limits, {})
    try:
        with store.anew(params):
            yield store
    except BaseException:
        store.con.close()
        raise
    _here.kept = limits, store
