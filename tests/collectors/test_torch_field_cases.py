"""What collectors of this field got wrong, each case with its right answer."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn, relu

from collectors import PrecisionDebugger

from .recording import Record, on_ranks, record, recording

GELU = F.gelu
BAD = ("has_nan", "has_posinf", "has_neginf")


def looked_at(dump: Path, tensor: Tensor) -> dict[str, Any]:
    """Return what is on record of a tensor that a call reads."""
    return record(dump, lambda: torch.positive(tensor)).call("Torch.positive").tensors["input.0"]


def test_the_norm_of_float16_may_leave_its_range(tmp_path: Path) -> None:
    row = looked_at(tmp_path, torch.full((65536,), 300.0, dtype=torch.float16))
    assert [row[key] for key in ("max", "min", "mean", "norm")] == [300, 300, 300, 76800]
    assert (row["nan_count"], row["posinf_count"], row["neginf_count"]) == (0, 0, 0)
    assert not row["saturated"]


def test_the_norm_of_bfloat16_may_leave_the_range_of_float32(tmp_path: Path) -> None:
    row = looked_at(tmp_path, torch.full((1000,), 1e30, dtype=torch.bfloat16))
    assert row["norm"] == pytest.approx(3.163e31, rel=1e-3)
    assert not any(row[key] for key in (*BAD, "saturated"))


def test_nan_and_infinity_leave_the_finite_range_on_record(tmp_path: Path) -> None:
    row = looked_at(tmp_path, torch.tensor([1, torch.nan, -torch.inf, 3]))
    assert (row["nan_count"], row["posinf_count"], row["neginf_count"]) == (1, 0, 1)
    assert [row[key] for key in BAD] == [True, False, True]
    assert (row["min"], row["max"], row["mean"]) == (1, 3, 2)
    assert row["norm"] == pytest.approx(10**0.5)


@pytest.mark.parametrize("shape", [(0,), (0, 4096), (5, 5, 0)])
def test_an_empty_tensor_is_one_record_without_numbers(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    def work() -> None:
        torch.neg(torch.zeros(shape, dtype=torch.bfloat16))
        torch.neg(torch.ones(1))

    found = record(tmp_path, work)
    assert [name for name in found.names if "neg" in name] == [
        "Torch.neg.0.forward",
        "Torch.neg.1.forward",
    ]
    rows = found.call("Torch.neg").tensors
    assert list(rows) == ["input.0", "output.0"]
    for row in rows.values():
        assert (row["numel"], row["shape"], row["dtype"]) == (0, list(shape), "bfloat16")
        assert [row[key] for key in ("max", "min", "mean", "norm", "nan_count")] == [None] * 5
        assert not any(row[key] for key in BAD)


def test_the_input_of_an_in_place_call_is_read_before_it(tmp_path: Path) -> None:
    x = torch.tensor([-1.0, 2.0])
    call = record(tmp_path, x.relu_).call("Tensor.relu_")
    assert (call.tensors["input.0"]["min"], call.tensors["output.0"]["min"]) == (-1, 0)


def test_a_name_bound_before_the_start_is_recorded(tmp_path: Path) -> None:
    """Taken with `from torch import relu` when this file was loaded."""
    found = record(tmp_path, lambda: relu(torch.tensor([-1.0])))
    assert found.call("Torch.relu").tensors["output.0"]["max"] == 0


class Picky(nn.Module):
    """A model that compares its activation with the one of PyTorch."""

    def __init__(self, act: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.act = nn.Linear(2, 2), act

    def forward(self, x: Tensor) -> Tensor:
        assert self.act is F.gelu
        assert self.act in {torch._C._nn.gelu}
        result: Tensor = self.act(self.linear(x))
        return result


def test_a_model_that_compares_functions_by_identity_trains(tmp_path: Path) -> None:
    model = Picky(GELU)
    found = record(tmp_path, lambda: model(torch.ones(1, 2)).sum().backward(), model)
    assert "Functional.gelu.0.backward" in found.names


def test_an_activation_in_place_keeps_its_gradients(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))
    x = torch.randn(3, 4)

    def gradients() -> list[Tensor]:
        model.zero_grad()
        model(x).sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    expected = gradients()
    with recording(tmp_path, model):
        found = gradients()
    assert len(found) == 4
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert Record(tmp_path).call("Functional.relu.0.backward")["module"] == "1"


MICRO_BATCHES = 4


def test_gradients_of_micro_batches_are_accumulated_one_call_each(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = PrecisionDebugger(dump_path=tmp_path)
    for _ in range(2):
        debugger.start(model)
        for micro in range(MICRO_BATCHES):
            model(torch.full((1, 3), micro + 1.0)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()
    steps = [Record(tmp_path, step=step).calls for step in range(2)]
    keys = [(step, call["seq"]) for step, calls in enumerate(steps) for call in calls]
    assert len(set(keys)) == len(keys)
    for calls in steps:
        assert len({call["name"] for call in calls}) == len(calls)
        added = [call for call in calls if call["api"] == "accumulate"]
        shapes = Counter(tuple(call.tensors["output.0"]["shape"]) for call in added)
        assert shapes == {(2, 3): MICRO_BATCHES, (2,): MICRO_BATCHES}
        weight = [call for call in added if call.tensors["output.0"]["shape"] == [2, 3]]
        assert [call.tensors["input.0"]["max"] for call in weight] == [1, 2, 3, 4]
        assert [call.tensors["output.0"]["max"] for call in weight] == [1, 3, 6, 10]
        for earlier, later in itertools.pairwise(weight):
            assert later.tensors["input.grad"]["producer_seq"] == earlier["seq"]


def waited_in_another_order(rank: int, dump: Path) -> None:
    with recording(dump):
        first, second = torch.tensor([rank + 1.0]), torch.tensor([10.0 * (rank + 1)])
        works = [dist.all_reduce(x, async_op=True) for x in (first, second)]
        torch.ones(64, 64) @ torch.ones(64, 64)
        for work in reversed(works):
            work.wait()
        torch.positive(second)


def test_an_asynchronous_sum_is_read_when_it_is_there(tmp_path: Path) -> None:
    assert on_ranks(2, waited_in_another_order, tmp_path) == [0, 0]
    for rank in range(2):
        calls = [call for call in Record(tmp_path, rank=rank).calls if call["kind"] == "comm"]
        assert [call["group_seq"] for call in calls] == [0, 1]
        assert [call.tensors["input.0"]["max"] for call in calls] == [rank + 1, 10 * (rank + 1)]
        assert [call.tensors["output.0"]["max"] for call in calls] == [3, 30]


class Block(nn.Module):
    """A little of what a transformer does, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(16, 8)
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True)
        self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.3)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        result: Tensor = self.mlp(self.drop(self.norm(x)))
        return result


def trained(debugger: PrecisionDebugger | None) -> list[Tensor]:
    """Return losses, gradients and norms of 20 steps, then parameters and the random state."""
    torch.manual_seed(7)
    model = Block()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    seen: list[Tensor] = []
    for _ in range(20):
        if debugger:
            debugger.start(model)
        ids = torch.randint(16, (2, 6))
        loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        if debugger:
            debugger.stop()
            debugger.step()
        seen += [loss.detach(), norm, *gradients]
    return [*seen, *(p.detach() for p in model.parameters()), torch.get_rng_state()]


def bits(tensor: Tensor) -> bytes:
    return tensor.contiguous().numpy().tobytes()


def test_twenty_steps_with_dropout_are_the_same_bit_for_bit(tmp_path: Path) -> None:
    expected = trained(None)
    found = trained(PrecisionDebugger(dump_path=tmp_path))
    assert len(found) == len(expected) > 20 * 12
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert bits(a) == bits(b)
    assert len(Record(tmp_path, step=19).calls) > 30


LONG = "a very/long name " * 25


def files_of(dump: Path, calls: int) -> set[str]:
    """Return the files of a dump of 2 ranks and 3 steps with so many calls each."""
    scale = type(LONG, (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    model = nn.Sequential()
    model.add_module(LONG.replace(".", " "), nn.ReLU())
    for rank in range(2):
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("RANK", str(rank))
            debugger = PrecisionDebugger(dump_path=dump)
            for _ in range(3):
                debugger.start(model)
                scale.apply(model(torch.ones(2)))
                for _ in range(calls):
                    torch.ones(2)
                debugger.stop()
                debugger.step()
    return {str(path.relative_to(dump)) for path in dump.rglob("*") if path.is_file()}


def test_files_grow_with_ranks_and_steps_and_not_with_calls(tmp_path: Path) -> None:
    few, many = files_of(tmp_path / "few", 3), files_of(tmp_path / "many", 500)
    assert few == many
    assert len(many) == 2 * 3 * 2 + 1
    assert not any("long" in name for name in many)


def test_the_longest_names_are_kept_whole_and_numbered_anew_in_each_step(tmp_path: Path) -> None:
    files_of(tmp_path, 3)
    for step in range(3):
        calls = {call["name"]: call for call in Record(tmp_path, step=step, rank=1).calls}
        assert calls[f"Function.{LONG}.0.forward"]["api"] == LONG
        assert calls["Functional.relu.0.forward"]["module"] == LONG
        assert calls["Torch.ones.3.forward"]["call_index"] == 3
