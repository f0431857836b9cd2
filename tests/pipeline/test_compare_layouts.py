"""Tensors that ranks hold parts or copies of, in other layouts on both sides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ..conftest import compare_here
from ..dumps import Run, Value
from .test_compare_cases import Build, compared, op

NUMBERS = range(1, 9)


def part(numbers: Sequence[int], shape: tuple[int, ...], layout: str | None = None) -> Value:
    """Return what is recorded of some numbers."""
    return Value(
        max=max(numbers), min=min(numbers), mean=sum(numbers) / len(numbers),
        norm=sum(n * n for n in numbers) ** 0.5, shape=shape, layout=layout,
    )  # fmt: skip


def held(*parts: Value) -> Build:
    """Return what fills a dump with a call on each rank that reads a part."""

    def fill(run: Run) -> None:
        for rank, value in enumerate(parts):
            run.rank(rank).call(op("exp"), [value], [])

    return fill


def sharded(count: int, *, last: int = 8, layout: str | None = None) -> Build:
    """Return what fills a dump with 1 to 8 in so many parts, the last number another perhaps."""
    numbers = [*NUMBERS[:-1], last]
    size = len(numbers) // count
    shape = (8,) if layout else (size,)
    cuts = [numbers[n * size : (n + 1) * size] for n in range(count)]
    return held(*(part(cut, shape, layout) for cut in cuts))


def placed(mesh: list[int], *placements: str) -> str:
    return json.dumps({"mesh": mesh, "placements": list(placements)})


def test_one_rank_against_the_shards_of_two(tmp_path: Path) -> None:
    """Norms of shards do not add up, their squares do."""
    same = compared(tmp_path / "same", sharded(1), sharded(2), ranks=2)
    assert (same["verdict"], same["read"]["tensors"]) == ("same", 1)
    other = compared(tmp_path / "other", sharded(1), sharded(2, last=9), ranks=2)
    assert other["first_divergence"]["slot"] == "input.0"


@pytest.mark.parametrize(
    ("bench", "target"),
    [
        (sharded(1), lambda last: sharded(2, last=last, layout=placed([2], "S(0)"))),
        (
            sharded(2, layout=placed([2], "Shard(dim=0)")),
            lambda last: sharded(4, last=last, layout=placed([4], "S(0)")),
        ),
        (
            held(*[part([1, 3, 5, 7], (4, 2), placed([2], "S(1)")),
                   part([2, 4, 6, 8], (4, 2), placed([2], "S(1)"))]),
            lambda last: held(part([1, 2, 3, 4], (4, 2), placed([2], "S(0)")),
                              part([5, 6, 7, last], (4, 2), placed([2], "S(0)"))),
        ),
        (held(part(NUMBERS, (8,)), part(NUMBERS, (8,))),
         lambda last: sharded(2, last=last, layout=placed([2], "S(0)"))),
    ],
    ids=["whole and two", "two and four", "columns and rows", "copies and shards"],
)  # fmt: skip
def test_placements_say_how_a_tensor_is_cut(tmp_path: Path, bench: Build, target) -> None:
    """The shape on record is that of the whole, the numbers are those of a part."""
    same = compared(tmp_path / "same", bench, target(8), ranks=4)
    assert (same["verdict"], same["findings"], same["warnings"]) == ("same", [], [])
    other = compared(tmp_path / "other", bench, target(9), ranks=4)["first_divergence"]
    assert (other["status"], other["slot"]) == ("suspect", "input.0")


def test_nan_in_one_part(tmp_path: Path) -> None:
    """The other numbers are over the finite elements, and agree."""
    halves = [part(NUMBERS[:4], (4,)), part(NUMBERS[4:], (4,)).but(nan=1)]
    first = compared(tmp_path / "one", sharded(1), held(*halves), ranks=2)["first_divergence"]
    assert (first["status"], first["slot"]) == ("nonfinite", "input.0")
    whole = held(part(NUMBERS, (8,)).but(nan=1))
    assert compared(tmp_path / "both", whole, held(*halves), ranks=2)["verdict"] == "same"


def test_one_layout_on_both_sides_goes_rank_by_rank(tmp_path: Path) -> None:
    bench, target = (sharded(2, last=n, layout=placed([2], "S(0)")) for n in (8, 9))
    assert compared(tmp_path / "same", bench, bench, ranks=2)["read"]["tensors"] == 2
    assert compared(tmp_path / "other", bench, target, ranks=2)["first_divergence"]["rank"] == 1


def test_terms_of_a_sum_are_said_not_to_be_comparable(tmp_path: Path) -> None:
    terms = held(*(part(NUMBERS, (8,), placed([2], "P(sum)")) for _ in range(2)))
    result = compared(tmp_path, sharded(1), terms, ranks=2)
    assert result["verdict"] == "unknown"
    assert "DTensor's Partial" in result["warnings"][0]["text"]


def test_replicas_of_a_shard_must_be_copies(tmp_path: Path) -> None:
    """Two data-parallel groups of two shards against one rank that holds the whole."""
    halves = [NUMBERS[:4], NUMBERS[4:]] * 2
    copies = held(*(part(half, (4,)) for half in halves))
    assert compared(tmp_path / "same", sharded(1), copies, ranks=4)["verdict"] == "same"
    odd = held(*(part(half, (4,)) for half in [*halves[:3], [5, 6, 7, 9]]))
    first = compared(tmp_path / "other", sharded(1), odd, ranks=4)["first_divergence"]
    assert "of ranks that should hold copies of one part not all do" in first["reason"]


def trained(*weights: float) -> Build:
    """Return what fills a dump with ranks that read their own data and one weight each."""

    def fill(run: Run) -> None:
        for rank, top in enumerate(weights):
            read = [Value(max=1.0 + rank), Value(max=top, slot="input.weight")]
            run.rank(rank).call("Functional.linear.0.forward", read, [Value(max=3.0 + rank)])

    return fill


@pytest.mark.parametrize(("weights", "verdict"), [((1, 1, 1), "same"), ((1, 1, 1.01), "different")])
def test_replicas_of_one_run(tmp_path: Path, weights: tuple[float, ...], verdict: str) -> None:
    """Their data differ and say nothing; a weight that went its own way is named with its rank."""
    run = Run(tmp_path / "run", ranks=3)
    trained(*weights)(run)
    dump = run.write()
    result = compare_here(dump, dump, ranks=[(1, 0), (2, 0)])
    assert (result["verdict"], result["replicas"], result["read"]["tensors"]) == (verdict, True, 2)
    first = result["first_divergence"]
    if verdict == "different":
        assert (first["rank"], first["slot"]) == (2, "input.weight")
        assert first["hint"].startswith("look at the broadcast at the start")


def test_ranks_of_one_run_against_themselves_are_no_replicas(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", ranks=2)
    trained(1, 2)(run)
    dump = run.write()
    result = compare_here(dump, dump)
    assert (result["verdict"], result["replicas"], result["read"]["tensors"]) == ("same", False, 6)
