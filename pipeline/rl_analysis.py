"""The way from two collections to the result of `rl`: list, join, measure, judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from analyzers.rl_diff import rl_diff
from analyzers.rl_setting import Setting, choose_match, choose_setting

from .engine import Engine
from .errors import DumpError
from .readers.rollouts import Part
from .rl_measure import MEASURED, MeasureTask
from .rl_shown import show_tasks
from .rl_tables import KEYS, SAMPLES, SHOWN_TOKENS
from .rl_tasks import Sides, Tables, measure_steps, show_samples
from .settings import Limits
from .store import Store

STEP_BYTES = 512 * 2**20
"""A step that is larger on disk is measured key by key."""
HELD_BYTES = 64 * 2**20
"""Rows that are kept back to be added together; the database itself spills to disk."""
MOST_TOKENS = 300_000
"""Tokens that rules look at one by one; of more, those of an even choice of samples."""

PAIR_COLUMNS = ("pair", "a_part", "a_micro", "a_place", "b_part", "b_micro", "b_place")
INDEXED = {"samples": SAMPLES, "keys": KEYS}


def rl_store(limits: Limits, explain: Callable[[str], None] | None = None) -> Store:
    """Return an empty store for one comparison."""
    return Store(limits, {"match_by": "place", "one_run": False, "eps": 2.0**-8}, explain)


def measure_collections(
    sides: Sides, listed: Iterable[Tables], store: Store, engine: Engine
) -> Setting:
    """Fill the tables of `store`; return how the sides are joined and what is compared.

    Args:
        sides: what is compared.
        listed: their samples and keys, from `list_samples`.
        store: empty.
        engine: runs the tasks.

    Raises:
        DumpError: a part cannot be read.
    """
    _fill(store, INDEXED, listed)
    _check_pair(store, sides)
    match = choose_match(store, one_dump=sides.keys is not None)
    setting = choose_setting(store, match, sides.keys, (sides.a.config, sides.b.config))
    store.params |= {"match_by": match, "one_run": setting.one_run, "eps": setting.eps}
    tasks = _measure_tasks(sides, setting, _pairs(store), engine)
    _fill(store, MEASURED, measure_steps(tasks, engine))
    return setting


def judge_collections(
    sides: Sides, setting: Setting, store: Store, engine: Engine
) -> dict[str, Any]:
    """Return the result document of CONTRACT section 2; the tables behind it are in `store`."""
    result = rl_diff(store, setting)
    worst = store.rows("rl/worst_samples")
    shown = show_tasks(worst, sides.a.parts, sides.b.parts, setting.log_probs)
    _fill(store, {"shown_tokens": SHOWN_TOKENS}, show_samples(shown, engine))
    return {"tool": "rl", "schema": 1, "a": str(sides.a.path), "b": str(sides.b.path), **result}


def _fill(store: Store, tables: Mapping[str, Mapping[str, str]], results: Iterable[Tables]) -> None:
    """Make tables of what tasks bring.

    Rows that fit in memory stay the Arrow rows that they are; of more, the database makes its own.
    """
    held: list[Tables] = []
    size, taken_in = 0, False
    for result in results:
        held.append(result)
        size += sum(rows.nbytes for rows in result.values())
        if size > HELD_BYTES:
            _take_in(store, tables, held, made=taken_in)
            size, taken_in = 0, True
    if taken_in or not held:
        _take_in(store, tables, held, made=taken_in)
    else:
        for table, columns in tables.items():
            store.keep(table, columns, _joined(held, table))
    for table in tables:
        store.final(table)


def _take_in(
    store: Store,
    tables: Mapping[str, Mapping[str, str]],
    held: list[Tables],
    *,
    made: bool,
) -> None:
    """Add what is held to tables of the database, and forget it."""
    for table, columns in tables.items():
        if not made:
            store.fill(table, columns, [])
        if held:
            store.add_arrow(table, _joined(held, table))
    held.clear()


def _joined(held: Sequence[Tables], table: str) -> pa.Table:
    return pa.concat_tables([tables[table] for tables in held])


def _check_pair(store: Store, sides: Sides) -> None:
    """Raise DumpError if a key that was asked for is not there."""
    known = [row["key"] for row in store.rows("rl/side_keys")]
    for key in sides.keys or ():
        if key not in known:
            raise DumpError(f"{sides.a.path} has no key {key}; its keys are {', '.join(known)}")


def _pairs(store: Store) -> dict[str, np.ndarray[Any, Any]]:
    """Return columns of rl/pairs."""
    store.answer("rl/pairs")
    names = ("step", *PAIR_COLUMNS)
    table = store.con.table("pairs").select(*names).to_arrow_table()
    return {name: table.column(name).to_numpy() for name in names}


def _measure_tasks(
    sides: Sides, setting: Setting, pairs: dict[str, np.ndarray[Any, Any]], engine: Engine
) -> list[MeasureTask]:
    """Return a task for each step; for each key of it, where a step is large."""
    steps = sorted({p.step for p in sides.a.parts} & {p.step for p in sides.b.parts})
    tasks = []
    for step in steps:
        here = pairs["step"] == step
        a, b = (_numbered(side.parts, step) for side in (sides.a, sides.b))
        whole = MeasureTask(
            step=step,
            a=a,
            b=b,
            pairs={name: pairs[name][here] for name in PAIR_COLUMNS},
            log_probs=setting.log_probs,
            keys=None,
            facts=True,
            share=setting.token_share(MOST_TOKENS),
        )
        tasks += _by_key(whole, setting.keys) if _bytes(a) + _bytes(b) > STEP_BYTES else [whole]
    return tasks


def _numbered(parts: tuple[Part, ...], step: int) -> tuple[tuple[int, Part], ...]:
    return tuple((number, part) for number, part in enumerate(parts) if part.step == step)


def _bytes(parts: tuple[tuple[int, Part], ...]) -> int:
    return sum(part.bytes for _, part in parts)


def _by_key(whole: MeasureTask, keys: Iterable[frozenset[str]]) -> list[MeasureTask]:
    return [replace(whole, keys=some, facts=number == 0) for number, some in enumerate(keys)]
