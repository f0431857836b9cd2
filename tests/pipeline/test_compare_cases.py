"""Cases from the field, each with its right answer, on shards of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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


def test_identical_zeros(tmp_path: Path) -> None:
    fill = chain([op("exp")], {op("exp"): 0.0})
    assert compared(tmp_path, fill, fill)["verdict"] == "same"


def test_near_zero(tmp_path: Path) -> None:
    bench, target = ({op("exp"): top} for top in (0.0, 1e-30))
    result = compared(tmp_path, chain([op("exp")], bench), chain([op("exp")], target))
    assert (result["verdict"], result["findings"]) == ("same", [])


def test_nan_on_both_sides_and_on_one(tmp_path: Path) -> None:
    fill = chain([op("exp")], {}, nan=1)
    assert compared(tmp_path / "both", fill, fill)["verdict"] == "same"
    one = compared(tmp_path / "one", chain([op("exp")], {}), fill)
    assert one["first_divergence"]["status"] == "nonfinite"


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


def test_a_random_op(tmp_path: Path) -> None:
    name = "Functional.dropout.0.forward"
    result = compared(tmp_path, chain([name, op("exp")], {}), chain([name, op("exp")], {name: 1.3}))
    assert result["first_divergence"]["status"] == "random"
    assert result["first_divergence"]["source"]["why"] == "random op: device generator"


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
    strict = compared(tmp_path / "strict", fill(1.0), fill(last_bits), ranks=2, strict=True)
    assert strict["verdict"] == "different"


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


def test_micro_batches_pair_with_their_own_number(tmp_path: Path) -> None:
    """The target has one more call in micro-batch 1; nothing after it is paired askew."""
    base = [op("exp", n) for n in range(3)]
    more = [base[0], base[1], op("contiguous"), base[2]]
    assert statuses(compared(tmp_path, chain(base, {}), chain(more, {}))) == {
        op("contiguous"): "only_in_target"
    }


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


def test_one_rank_against_the_shards_of_two(tmp_path: Path) -> None:
    """Norms of shards do not add up, their squares do."""

    def whole(run: Run) -> None:
        value = Value(max=8.0, min=1.0, norm=14.282856857085701, shape=(8,))
        run.rank(0).call(op("exp"), [value], [])

    def shards(last: float) -> Build:
        def fill(run: Run) -> None:
            parts = [(4.0, 1.0, 5.477225575051661), (last, 5.0, 13.19090595827292)]
            for rank, (top, low, norm) in enumerate(parts):
                part = Value(max=top, min=low, norm=norm, shape=(4,))
                run.rank(rank).call(op("exp"), [part], [])

        return fill

    same = compared(tmp_path / "same", whole, shards(8.0), ranks=2)
    assert (same["verdict"], same["read"]["tensors"]) == ("same", 1)
    other = compared(tmp_path / "other", whole, shards(8.1), ranks=2)
    assert other["first_divergence"]["slot"] == "input.0"
