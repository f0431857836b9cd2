"""What all parts are together."""

from __future__ import annotations

import pytest

COLUMNS = (
    "step rank bench_rank seq bench_seq name bench_name slot bench_slot is_input weight dtype "
    "bench_dtype size sharding bench_sharding shards numel max min mean norm bench_shards "
    "bench_numel bench_max bench_min bench_mean bench_norm"
)
WHOLE = "1 8 8 1 4.5 14.282856857085701"
"""Of the numbers 1 to 8: in one part, numel, max, min, mean, norm."""
LOW, HIGH = "2 4 4 1 2.5 5.477225575051661", "2 4 8 5 6.5 13.19090595827292"
"""Its halves."""
QUARTERS = [
    f"4 2 {2 * n + 2} {2 * n + 1} {2 * n + 1.5} {(8 * n * n + 12 * n + 5) ** 0.5}" for n in range(4)
]


def row(rank: int, bench_rank: int, part: str, bench: str, layouts: str = "- -") -> str:
    same = "4 3 mul mul input.0 input.0 true false float32 float32 8"
    return f"0 {rank} {bench_rank} {same} {layouts} {part} {bench}"


def merged(ask, *rows: str) -> list:
    db = ask("diff/merged_parts").table("parts", COLUMNS, *rows)
    return db.rows("shards comparable max min mean norm ratio")


def test_the_algebra_of_shards(ask) -> None:
    """Not the sum of the norms, which would be 18.668."""
    found = merged(ask, row(0, 0, LOW, WHOLE), row(1, 0, HIGH, WHOLE))
    ((shards, comparable, high, low, mean, norm, ratio),) = found
    assert (shards, comparable, high, low, mean) == (2, True, 8.0, 1.0, 4.5)
    assert abs(norm - 14.282856857085701) < 1e-9
    assert ratio < 1e-3


def test_a_shard_that_differs(ask) -> None:
    other = "2 4 8.08 5 6.5 13.3"
    assert merged(ask, row(0, 0, LOW, WHOLE), row(1, 0, other, WHOLE))[0][-1] > 100


def test_a_missing_shard_is_not_comparable(ask) -> None:
    assert merged(ask, row(0, 0, LOW, WHOLE))[0][:2] == (2, False)


def test_replicas_count_once_and_must_be_copies(ask) -> None:
    parts = [LOW, HIGH, LOW, HIGH]
    db = ask("diff/merged_parts").table(
        "parts", COLUMNS, *(row(n, 0, part, WHOLE) for n, part in enumerate(parts))
    )
    ((comparable, differ, ratio),) = db.rows("comparable replicas_differ ratio")
    assert (comparable, differ, ratio < 1e-3) == (True, False, True)
    parts[3] = "2 4 8.1 5 6.5 13.3"
    db = ask("diff/merged_parts").table(
        "parts", COLUMNS, *(row(n, 0, part, WHOLE) for n, part in enumerate(parts))
    )
    ((comparable, differ, ratio),) = db.rows("comparable replicas_differ ratio")
    assert (comparable, differ, ratio > 100) == (True, True, True)


def test_two_shards_against_four(ask) -> None:
    """Ranks 0 and 1 of four hold what rank 0 of two does."""
    halves = [LOW, HIGH]
    rows = [row(n, n // 2, QUARTERS[n], halves[n // 2], "S0/4 S0/2") for n in range(4)]
    assert [found[1] for found in merged(ask, *rows)] == [True, True]
    assert all(found[-1] < 1e-3 for found in merged(ask, *rows))


def test_other_dimensions_are_put_together_over_all_ranks(ask) -> None:
    """Cut across, neither rank holds what the other dump's rank of its number does."""
    odd, even = "2 4 7 1 4 9.16515138991168", "2 4 8 2 5 10.954451150103322"
    rows = [row(0, 0, LOW, odd, "S0/2 S1/2"), row(1, 1, HIGH, even, "S0/2 S1/2")]
    ((shards, comparable, high, low, mean, _, ratio),) = merged(ask, *rows)
    assert (shards, comparable, high, low, mean) == (2, True, 8.0, 1.0, 4.5)
    assert ratio < 1e-3
    (alone,) = merged(ask, rows[0])
    assert alone[:2] == (2, False)


@pytest.mark.parametrize(
    ("layouts", "part", "why"),
    [
        ("P/2 -", "1 8 8 1 4.5 14.28", "partial"),
        ("S0/2 -", LOW, "incomplete"),
        ("S0/2 -", "2 4 - - - -", "incomplete"),
        ("S0/1 -", "1 8 - - - -", "numbers"),
    ],
)
def test_why_it_is_not_comparable(ask, layouts: str, part: str, why: str) -> None:
    db = ask("diff/merged_parts").table("parts", COLUMNS, row(0, 0, part, WHOLE, layouts))
    assert db.rows("comparable why") == [(False, why)]


def test_a_rank_without_an_element(ask) -> None:
    """Two rows over three ranks: the last holds nothing, and has no numbers."""
    rows = [row(0, 0, LOW, WHOLE, "S0/3 -"), row(1, 0, HIGH, WHOLE, "S0/3 -")]
    rows.append(row(2, 0, "2 0 - - - -", WHOLE, "S0/3 -"))
    rows = [text.replace("S0/3 - 2 ", "S0/3 - 3 ") for text in rows]
    ((shards, comparable, high, _, _, norm, ratio),) = merged(ask, *rows)
    assert (shards, comparable, high) == (3, True, 8.0)
    assert abs(norm - 14.282856857085701) < 1e-9
    assert ratio < 1e-3


def test_the_mean_of_uneven_shards_says_nothing(ask) -> None:
    """Of 9 elements over 2 ranks nobody wrote down who has 5."""
    rows = [row(0, 0, LOW, WHOLE, "S0/2 -"), row(1, 0, HIGH, WHOLE, "S0/2 -")]
    rows = [text.replace(" 8 S0/2", " 9 S0/2").replace("4.5", "4.7") for text in rows]
    assert merged(ask, *rows)[0][-1] < 1e-3
