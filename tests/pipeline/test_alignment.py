"""Which call of one sequence is which of the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline import alignment
from pipeline.alignment import align


def calls(operations: str, **columns: list[float]) -> dict[str, Any]:
    """Return calls, one a letter; columns not given are 0 (unknown), numbers count from 0."""
    size = len(operations)
    plain = {name: np.zeros(size) for name in ("site", "module", "shapes", "size", "peak")}
    given = {name: np.array(values, dtype=float) for name, values in columns.items()}
    letters = np.array([ord(letter) for letter in operations])
    return {"operation": letters, "call_index": np.arange(size), **plain, **given}


def test_equal_sequences() -> None:
    assert align(calls("abc"), calls("abc")) == [(0, 0), (1, 1), (2, 2)]


def test_inserted_and_missing_calls() -> None:
    assert align(calls("abcd"), calls("abxcd")) == [(0, 0), (1, 1), (2, 3), (3, 4)]
    assert align(calls("abcd"), calls("acd")) == [(0, 0), (2, 1), (3, 2)]
    assert align(calls("ab"), calls("")) == []


def test_another_operation_is_never_paired() -> None:
    assert align(calls("axb"), calls("ayb")) == [(0, 0), (2, 2)]


def test_the_place_in_the_source_outranks_equal_inputs() -> None:
    """The inserted g reads the very tensor that the old one read."""
    bench = calls("lgm", site=[1, 2, 3], size=[1, 7, 9])
    target = calls("lgagm", site=[1, 5, 6, 2, 3], size=[1, 7, 7, 8, 9])
    assert align(bench, target) == [(0, 0), (1, 3), (2, 4)]


def test_values_tell_which_layer_is_the_new_one() -> None:
    bench = calls("llll", size=[1, 2, 3, 4], peak=[1, 2, 3, 4])
    target = calls("lllll", size=[1, 2, 9, 3, 4], peak=[1, 2, 9, 3, 4])
    assert align(bench, target) == [(0, 0), (1, 1), (2, 3), (3, 4)]


def test_code_that_only_moved_is_the_same() -> None:
    bench = calls("abc", site=[1, 2, 3], module=[1, 2, 3])
    target = calls("abc", site=[1, 9, 3], module=[1, 8, 3])
    assert align(bench, target) == [(0, 0), (1, 1), (2, 2)]


def test_a_replaced_block_is_no_pair_by_accident() -> None:
    bench = calls("amsmb", shapes=[1, 2, 3, 4, 5])
    target = calls("afmb", shapes=[1, 6, 7, 5])
    assert align(bench, target) == [(0, 0), (4, 3)]


def test_long_sequences_go_window_by_window(monkeypatch) -> None:
    monkeypatch.setattr(alignment, "WINDOW", 64)
    rng = np.random.default_rng(0)
    letters = "".join(chr(97 + n) for n in rng.integers(0, 20, 1000))
    sizes = rng.uniform(1, 2, 1000)
    kept = np.array([n for n in range(1000) if n % 50])
    bench = calls(letters, size=list(sizes), peak=list(sizes))
    target = calls(
        "".join(letters[n] for n in kept), size=list(sizes[kept]), peak=list(sizes[kept])
    )
    assert align(bench, target) == [(int(n), place) for place, n in enumerate(kept)]
