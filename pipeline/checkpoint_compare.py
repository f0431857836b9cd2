"""The way from two checkpoints to the result of `checkpoint`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from analyzers.checkpoint_diff import checkpoint_diff

from .checkpoint_hints import Suspect, hint, histogram
from .checkpoint_plan import PIECES, Task, compare, compiled, load, size_of, tasks
from .engine import Engine, Failure, reason_of
from .engine_local import LocalEngine
from .progress import Progress
from .readers.checkpoint.contents import Contents
from .readers.checkpoint.layouts import OUTER
from .readers.checkpoint.matching import Pair, Pairing
from .readers.checkpoint.opening import open_checkpoint
from .readers.checkpoint.pairing import pair
from .settings import Limits, cpu_count
from .store import Store

PAIRS = {
    "pair": "BIGINT", "kind": "VARCHAR", "name": "VARCHAR", "name_b": "VARCHAR", "part": "VARCHAR",
    "layer": "BIGINT", "dtype_a": "VARCHAR", "dtype_b": "VARCHAR", "shape": "BIGINT[]",
    "padding": "BIGINT", "padded": "BIGINT", "note": "VARCHAR",
    "otherwise": "VARCHAR",
}  # fmt: skip
STRAYS = {
    "side": "VARCHAR", "kind": "VARCHAR", "status": "VARCHAR", "name": "VARCHAR",
    "name_b": "VARCHAR", "hint": "VARCHAR", "shape_a": "BIGINT[]", "shape_b": "BIGINT[]",
}  # fmt: skip
ENTRIES = {"name": "VARCHAR", "kind": "VARCHAR", "content": "VARCHAR"}
FILE_PROBLEMS = {"side": "VARCHAR", "code": "VARCHAR", "text": "VARCHAR", "tensors": "VARCHAR[]"}
EXPLANATIONS = {"pair": "BIGINT", "hint": "VARCHAR"}
HISTOGRAM = {"pair": "BIGINT", "power": "BIGINT", "elements": "BIGINT"}

TABLES = {
    "tensor_pairs": PAIRS,
    "pieces": PIECES,
    "strays": STRAYS,
    "entries_a": ENTRIES,
    "entries_b": ENTRIES,
    "file_problems": FILE_PROBLEMS,
    "explanations": EXPLANATIONS,
    "histogram": HISTOGRAM,
}
"""Tables that no question makes: what the questions under sql/checkpoint read, and a chart."""

ARROW = {
    "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "BOOLEAN": pa.bool_(), "VARCHAR": pa.string(),
    "BIGINT[]": pa.list_(pa.int64()), "VARCHAR[]": pa.list_(pa.string()),
}  # fmt: skip

EXPLAINED = 200
"""Pairs that are explained, the worst of them."""
WORTH_A_WORKER = 8 * 2**20
"""Bytes."""


@dataclass(frozen=True)
class Question:
    """What is asked.

    Args:
        a, b: paths of the checkpoints.
        optimizer: compare the optimizer's state too.
        every: list equal tensors too.
        layout: YAML file with more layout rules, or nothing.
        vocabulary: entries of the vocabulary without padding.
    """

    a: Path
    b: Path
    optimizer: bool = False
    every: bool = False
    layout: str = ""
    vocabulary: int | None = None


def local_engine(size: int, workers: int = 0) -> LocalEngine:
    """Return an engine on this machine for comparing `size` bytes.

    A worker is worth its start from a few MiB on. They are threads: numpy lets them run at once.
    """
    return LocalEngine(workers or max(1, min(cpu_count(), size // WORTH_A_WORKER)))


@contextmanager
def compare_checkpoints(
    question: Question,
    limits: Limits,
    open_engine: Callable[[int], Engine] = local_engine,
    *,
    quiet: bool = True,
) -> Iterator[tuple[dict[str, Any], Store]]:
    """Yield the result document of CONTRACT section 2, and a store with every table behind it.

    Args:
        question: what is compared.
        limits: what the database may use.
        open_engine: gives what computes, for a number of bytes.
        quiet: no progress on stderr.

    Raises:
        ReadError: one of the two is no checkpoint, or nothing of it can be read.
    """
    a = open_checkpoint(question.a, question.layout)
    b = open_checkpoint(question.b, question.layout)
    pairing = pair(
        a, b, optimizer=question.optimizer, layout=question.layout, vocabulary=question.vocabulary
    )
    engine = open_engine(size_of(pairing.pairs))
    try:
        with Store(limits, {}) as store:
            _fill(store, "tensor_pairs", _pair_rows(pairing.pairs))
            if loops := compiled(pairing.pairs):
                list(engine.everywhere(load, loops))
            start = time.monotonic()
            _fill(store, "pieces", _run(engine, pairing.pairs, quiet))
            seconds = time.monotonic() - start
            suspects = _suspects(store, pairing)
            _fill(store, "explanations", _explain(engine, suspects))
            _fill(store, "histogram", _histogram(suspects))
            _explain_strays(pairing)
            _fill_given(store, a, b, pairing)
            result = _result(question, a, b, store)
            result["read"] |= {"bytes": size_of(pairing.pairs), "seconds": round(seconds, 3)}
            yield result, store
    finally:
        engine.close()


def explain_checkpoint(limits: Limits) -> str:
    """Return every statement of a comparison, with empty tables, as a script for a DuckDB shell."""
    statements: list[str] = []
    with Store(limits, {}, statements.append) as store:
        for table, columns in TABLES.items():
            store.fill(table, columns, [])
        checkpoint_diff(store)
        store.answer("checkpoint/layers")
    return "\n".join(statements)


def _run(engine: Engine, pairs: Sequence[Pair], quiet: bool) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each piece, as tasks are done; a task that fails marks its pairs."""
    work = tasks(pairs, engine.workers)
    with Progress("comparing", sum(t.bytes for t in work), quiet=quiet, unit="B") as progress:
        for task, result in engine.map(compare, work):
            progress.done(task.bytes)
            yield from _failed(task, result) if isinstance(result, Failure) else result


def _failed(task: Task, failure: Failure) -> Iterator[tuple[Any, ...]]:
    for number in {piece.pair for piece in task.pieces}:
        yield (number, *[None] * (len(PIECES) - 2), reason_of(failure))


def _pair_rows(pairs: Sequence[Pair]) -> Iterator[tuple[Any, ...]]:
    """Yield a row of `PAIRS` for each pair."""
    for number, p in enumerate(pairs):
        yield (
            number, p.kind, p.name, p.name_b, p.part, p.layer, p.a.dtype, p.b.dtype,
            list(p.a.shape), p.padding, p.padded, p.note, p.otherwise,
        )  # fmt: skip


def _fill_given(store: Store, a: Contents, b: Contents, pairing: Pairing) -> None:
    """Fill the tables that are known without a tensor being read."""
    _fill(
        store,
        "strays",
        (
            (u.side, u.kind, u.status, u.name, u.name_b, u.hint, u.shape_a, u.shape_b)
            for u in pairing.unpaired
        ),
    )
    for side, contents in (("a", a), ("b", b)):
        _fill(store, f"entries_{side}", _entries(contents))
    problems = [("a", p) for p in a.problems] + [("b", p) for p in b.problems]
    rows = [(side, p.code, p.text, list(p.tensors)) for side, p in problems]
    rows += [("", "not_covered", note, []) for note in pairing.notes]
    _fill(store, "file_problems", rows)


def _entries(contents: Contents) -> Iterator[tuple[str, str, str]]:
    for name, value in contents.values.items():
        yield OUTER.sub("", name), "value", str(value)
    for name, content in contents.opaque.items():
        yield OUTER.sub("", name), "opaque", content


def _suspects(store: Store, pairing: Pairing) -> list[Suspect]:
    """Return the worst differences, each with its neighbours in B, the worst first."""
    verdicts = [row for row in store.rows("checkpoint/verdicts") if row["status"] == "different"]
    worst = sorted(verdicts, key=lambda row: -row["relative_l2"])[:EXPLAINED]
    layers = {(p.kind, p.part, p.layer): p.b for p in pairing.pairs if p.layer is not None}
    suspects = []
    for row in worst:
        p = pairing.pairs[row["pair"]]
        steps = {"layer before": -1, "layer after": 1} if p.layer is not None else {}
        keys = {words: (p.kind, p.part, (p.layer or 0) + step) for words, step in steps.items()}
        near = tuple((words, layers[key]) for words, key in keys.items() if key in layers)
        suspects.append(Suspect(row["pair"], p.a, p.b, row["scale"], near))
    return suspects


def _explain(engine: Engine, suspects: Sequence[Suspect]) -> list[tuple[int, str]]:
    found = engine.map(hint, suspects)
    return sorted((s.pair, text) for s, text in found if isinstance(text, str))


def _explain_strays(pairing: Pairing) -> None:
    """Say of tensors of two shapes whether they hold the same."""
    for stray in pairing.unpaired:
        if stray.a is not None and stray.b is not None:
            text = hint(Suspect(-1, stray.a, stray.b))
            stray.hint = f"{stray.hint}; {text}" if text else stray.hint


def _histogram(suspects: Sequence[Suspect]) -> Iterator[tuple[int, int | None, int]]:
    """Yield how many elements of the worst tensor differ by which power of two."""
    for suspect in suspects[:1]:
        for power, elements in histogram(suspect):
            yield suspect.pair, power, elements


def _result(question: Question, a: Contents, b: Contents, store: Store) -> dict[str, Any]:
    found = checkpoint_diff(store, every=question.every)
    pairs = sum(found["counts"].values())
    store.answer("checkpoint/layers")
    return {
        "tool": "checkpoint",
        "schema": 1,
        "a": str(question.a),
        "b": str(question.b),
        "verdict": found["verdict"],
        "read": {
            "a": _facts(a),
            "b": _facts(b),
            "tensors": pairs,
            **found["counts"],
        },
        "findings": found["findings"],
        "warnings": found["warnings"],
    }


def _facts(contents: Contents) -> dict[str, Any]:
    tensors = len(contents.tensors) + len(contents.unmerged)
    return {"format": contents.format, **contents.facts, "tensors": tensors}


def _fill(store: Store, table: str, rows: Iterable[Sequence[Any]]) -> None:
    """Make a table of many rows."""
    columns: Mapping[str, str] = TABLES[table]
    values: list[list[Any]] = [[] for _ in columns]
    for row in rows:
        for column, value in zip(values, row, strict=True):
            column.append(value)
    arrays = [pa.array(v, ARROW[k]) for v, k in zip(values, columns.values(), strict=True)]
    store.view(table, store.arrow(pa.table(arrays, names=list(columns))))
