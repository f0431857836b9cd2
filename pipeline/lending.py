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
    """What a thread keeps."""

    limits: Limits | None = None
    store: Store | None = None


_here = _Thread()


@contextmanager
def lent(limits: Limits, params: Mapping[str, Any]) -> Iterator[Store]:
    """Lend this thread's store, empty.

    Args:
        limits: what it may use.
        params: values for the parameters of all questions.
    """
    if _here.store is None or _here.limits != limits:
        _here.limits, _here.store = limits, Store(limits, {})
    store = _here.store
    try:
        with store.anew(params):
            yield store
    except BaseException:  # what state it is in is unknown
        _here.store = None
        store.con.close()
        raise
