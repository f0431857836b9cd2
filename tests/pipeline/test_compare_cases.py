"""Cases from the field, each with its right answer, on shards of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.compare_text import compare_text

from ..conftest import compare_here
from ..dumps import Run, Value

Build = Callable[[Run], None]


def compared(
    tmp_path: Path, bench: Build, target: Build, *, ranks: int = 1, **options: Any
) -> dict:
    """Return the comparison of two dumps that functions fill."""
    dumps = []
    for name, fill in (("bench", bench), ("target", target)):
        run = Run(tmp_path / name, ranks=ranks)
        fill(run)
        dumps.append(run.write())
    return compare_here(*dumps, **options)


def chain(names: Sequence[str], values: dict[str, float], **content: Any) -> Build:
    """Return what fills a dump with calls that each read what the one before made."""

    def fill(run: Run) -> None:
        value = Value(max=1.0, norm=2.0)
        for name in names:
            top = values.get(name, 1.0)
            (value,) = run.rank(0).call(name, [value], [Value(max=top, norm=2 * top, **content)])

    return fill


def op(api: str, number: int = 0) -> str:
    return f"Torch.{api}.{number}.forward"


def statuses(result: dict[str, Any]) -> dict[str, str]:
    return {f["call"] or f["bench_call"]: f["status"] for f in result["findings"]}


def test_one_extra_call(tmp_path: Path) -> None:
    names = [op(api) for api in ("exp", "tanh", "sin", "cos")]
    result = compared(
        tmp_path, chain(names, {}), chain([*names[:2], op("contiguous"), *names[2:]], {})
    )
    assert result["verdict"] == "same"
    assert result["read"]["pairs"] == 4
    assert statuses(result) == {op("contiguous"): "only_in_target"}


def test_the_first_and_not_the_worst(tmp_path: Path) -> None:
    names = [op("exp", n) for n in range(60)]
    off = dict.fromkeys(names[10:50], 1.001) | dict.fromkeys(names[50:], 1.5)
    result = compared(tmp_path, chain(names, {}), chain(names, off))
    told = statuses(result)
    assert result["first_divergence"]["call"] == names[10]
    assert told[names[10]] == "suspect"
    assert told[names[50]] == told[names[11]] == "propagated"


def agreement(result: dict[str, Any]) -> dict[str, int]:
    """Return how tensors agree, of those ways that occur."""
    return {how: count for how, count in result["read"]["agreement"].items() if count}


def test_identical_zeros(tmp_path: Path) -> None:
    fill = chain([op("exp")], {op("exp"): 0.0})
    result = compared(tmp_path, fill, fill)
    assert (result["verdict"], result["findings"]) == ("same", [])
    assert agreement(result) == {"statistics": 2}


def test_near_zero(tmp_path: Path) -> None:
    """It passes by the absolute floor."""
    bench, target = ({op("exp"): top} for top in (0.0, 1e-30))
    result = compared(tmp_path, chain([op("exp")], bench), chain([op("exp")], target))
    assert (result["verdict"], result["findings"]) == ("same", [])
    assert agreement(result) == {"statistics": 1, "noise": 1}


def test_nan_on_both_sides_and_on_one(tmp_path: Path) -> None:
    fill = chain([op("exp")], {}, nan=1)
    both = compared(tmp_path / "both", fill, fill)
    assert both["verdict"] == "same"
    assert agreement(both) == {"statistics": 1, "nonfinite": 1}
    assert "1 equal, and both hold NaN or infinities" in compare_text(both)
    one = compared(tmp_path / "one", chain([op("exp")], {}), fill)
    assert one["first_divergence"]["status"] == "nonfinite"


@pytest.mark.parametrize("nan", [0, 1], ids=["minus zero", "payload of a NaN"])
def test_other_bits_of_equal_numbers(tmp_path: Path, nan: int) -> None:
    """The hash differs, the value does not; --strict wants both."""

    def fill(checksum: str) -> Build:
        return chain([op("exp")], {op("exp"): 0.0}, checksum=checksum, nan=nan)

    result = compared(tmp_path / "plain", fill("a"), fill("b"))
    assert (result["verdict"], result["findings"]) == ("same", [])
    assert agreement(result) == {"statistics": 1, "other_bits": 1}
    strict = compared(tmp_path / "strict", fill("a"), fill("b"), strict=True)["first_divergence"]
    assert strict["reason"] == "inputs agree, output.0 is not bit-equal"
    equal = compared(tmp_path / "equal", fill("a"), fill("a"), strict=True)
    assert agreement(equal) == {"statistics": 1, "nonfinite" if nan else "bits": 1}


def test_dtype_before_the_values(tmp_path: Path) -> None:
    names = [op("exp"), op("tanh")]

    def target(run: Run) -> None:
        value = Value(max=1.002, norm=2.0, dtype="bfloat16")
        for name in names:
            (value,) = run.rank(0).call(name, [value], [Value(norm=2.0, dtype="bfloat16")])

    result = compared(tmp_path, chain(names, {}), target)
    first = result["first_divergence"]
    assert (first["call"], first["slot"], first["status"]) == (op("exp"), "input.0", "dtype")
    assert "suspect" not in result["statuses"]


def dropped(zeros: int, top: float = 1.3) -> Build:
    """Return what fills a dump with a dropout of half a million elements and what reads it."""
    name, shape = "Functional.dropout.0.forward", (1000, 1000)

    def fill(run: Run) -> None:
        made = Value(max=top, min=-top, norm=(1e6 - zeros) ** 0.5, zeros=zeros, shape=shape)
        (value,) = run.rank(0).call(name, [Value(shape=shape)], [made])
        other = run.rank(0).call(op("sin"), [Value(shape=shape)], [Value(shape=shape)])
        for api in ("exp", "tanh"):
            read = Value(max=top, norm=700 * top, shape=shape)
            (value,) = run.rank(0).call(op(api), [value, *other], [read])

    return fill


def test_a_random_op(tmp_path: Path) -> None:
    """Two masks of one distribution; what reads them is tainted, what does not is compared."""
    result = compared(tmp_path, dropped(499_800), dropped(500_300, 1.4))
    first = result["first_divergence"]
    assert first["status"] == "random"
    assert first["source"]["why"] == "random op: device generator"
    assert "draws from one distribution, elements are not compared" in first["reason"]
    assert statuses(result) == {
        "Functional.dropout.0.forward": "random", op("exp"): "propagated", op("tanh"): "propagated",
    }  # fmt: skip


def test_replayed_masks_taint_nothing(tmp_path: Path) -> None:
    result = compared(tmp_path, dropped(499_800), dropped(499_800))
    assert (result["verdict"], result["findings"]) == ("same", [])


def test_a_random_op_of_another_distribution(tmp_path: Path) -> None:
    first = compared(tmp_path, dropped(499_800), dropped(300_000))["first_divergence"]
    assert (first["call"], first["status"]) == ("Functional.dropout.0.forward", "suspect")
    assert "drawn from another distribution" in first["reason"]


def test_the_last_bits_of_a_reduction(tmp_path: Path) -> None:
    def fill(top: float) -> Build:
        def filled(run: Run) -> None:
            for rank in range(2):
                shard = run.rank(rank)
                (made,) = shard.call(op("exp"), [Value()], [Value(max=1.0, norm=2.0)])
                shard.comm("Distributed.all_reduce.0.forward", [made], [Value(max=top, norm=2.0)])

        return filled

    last_bits = 1 + 2 * 2**-23
    plain = compared(tmp_path / "plain", fill(1.0), fill(last_bits), ranks=2)
    assert (plain["verdict"], plain["findings"]) == ("same", [])
    assert agreement(plain) == {"statistics": 6, "rounding": 2}
    assert "2 within rounding or another order of sums" in compare_text(plain)
    strict = compared(tmp_path / "strict", fill(1.0), fill(last_bits), ranks=2, strict=True)
    assert strict["first_divergence"]["reason"] == "inputs agree, output.0 is not bit-equal"
    beyond = compared(tmp_path / "beyond", fill(1.0), fill(1.001), ranks=2)
    assert beyond["first_divergence"]["status"] == "suspect"


def test_what_another_rank_brought_is_no_fault_of_the_communication(tmp_path: Path) -> None:
    def fill(top: float) -> Build:
        def filled(run: Run) -> None:
            for rank in range(2):
                shard, here = run.rank(rank), top if rank == 1 else 1.0
                (made,) = shard.call(op("exp"), [Value()], [Value(max=here, norm=2.0)])
                shard.comm("Distributed.all_reduce.0.forward", [made], [Value(max=top, norm=2.0)])

        return filled

    result = compared(tmp_path, fill(1.0), fill(1.5), ranks=2)
    assert (result["first_divergence"]["rank"], result["first_divergence"]["call"]) == (
        1,
        op("exp"),
    )
    assert result["statuses"] == {"suspect": 1, "propagated": 2}


def test_noise_of_the_benchmark_is_no_difference(tmp_path: Path) -> None:
    name = op("exp")
    further = Run(tmp_path / "further")
    chain([name], {name: 1.02})(further)
    bench, target = chain([name], {}), chain([name], {name: 1.01})
    assert compared(tmp_path / "without", bench, target)["verdict"] == "different"
    noise = [further.write()]
    assert compared(tmp_path / "with", bench, target, noise=noise)["verdict"] == "same"
    beyond = compared(tmp_path / "beyond", bench, chain([name], {name: 1.05}), noise=noise)
    assert beyond["verdict"] == "different"


def test_nothing_to_compare_is_unknown(tmp_path: Path) -> None:
    empty = chain([op("exp")], {})
    other = chain([op("matmul")], {})
    result = compared(tmp_path, empty, other)
    assert (result["verdict"], result["first_divergence"]) == ("unknown", None)
    assert result["read"]["only_in_bench"] == result["read"]["only_in_target"] == 1


def longer(top: float, shape: tuple[int, ...], result: float = 1.0, mean: float = 0.25) -> Build:
    """Return what fills a dump with one call that reads a tensor of a shape and makes a number."""

    def fill(run: Run) -> None:
        read = Value(max=top, min=-1.0, norm=3.0, mean=mean, shape=shape)
        run.rank(0).call(op("sum"), [read], [Value(max=result, norm=result, shape=())])

    return fill


def test_rows_of_padding_are_a_note(tmp_path: Path) -> None:
    """Zeros add nothing to the sum and to the sum of squares; that is all that is known."""
    bench, target = longer(2.0, (8, 4)), longer(2.0, (10, 4), mean=0.2)
    for name, sides in (("there", (bench, target)), ("back", (target, bench))):
        result = compared(tmp_path / name, *sides)
        assert (result["verdict"], result["statuses"]) == ("same", {"padding": 1})
        assert agreement(result) == {"statistics": 1, "padding": 1}


def test_strict_takes_no_padding(tmp_path: Path) -> None:
    sides = longer(2.0, (8, 4)), longer(2.0, (10, 4), mean=0.2)
    assert compared(tmp_path, *sides, strict=True)["first_divergence"]["status"] == "shape"


def test_what_is_read_and_changes_nothing_is_padding(tmp_path: Path) -> None:
    """Rows of an embedding that no token asks for may hold anything."""
    result = compared(tmp_path, longer(2.0, (8, 4)), longer(7.0, (10, 4)))
    assert (result["verdict"], result["statuses"]) == ("same", {"padding": 1})


@pytest.mark.parametrize(
    "target", [longer(7.0, (10, 4), result=2.0), longer(7.0, (10, 5), result=2.0)]
)
def test_what_is_longer_and_changes_the_result_is_a_shape(tmp_path: Path, target: Build) -> None:
    first = compared(tmp_path, longer(2.0, (8, 4)), target)["first_divergence"]
    assert (first["status"], first["slot"]) == ("shape", "input.0")
