"""What is on record of backward passes, updates and replicas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from .recording import Call, Record, on_ranks, record, recording


def weight(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


def maxima(call: Call, direction: str) -> dict[str, float]:
    """Return the maximum of each tensor of a call, by its slot."""
    return {slot: call.tensors[slot]["max"] for slot in call.slots(direction)}


def test_a_backward_stands_beside_its_forward(tmp_path: Path) -> None:
    w = weight(2, 3)
    found = record(tmp_path, lambda: (w * w).sum().backward())
    call = found.call("Tensor.mul.0.backward")
    assert (call["phase"], call["kind"], call["call_index"]) == ("backward", "compute", 0)
    assert maxima(call, "input") == {"input.0": 1}
    assert maxima(call, "output") == {"output.0": 3, "output.1": 3}
    assert found.producer(call["name"]) == ("Tensor.sum.0.backward", "output.0")


def test_gradients_that_the_engine_sums_are_a_call(tmp_path: Path) -> None:
    w = weight(1, 1)

    def work() -> None:
        y = w * 2
        (y * 3 + y * 4 + y).sum().backward()

    found = record(tmp_path, work)
    added = found.call("Gradient.add.0.backward")
    assert sorted(maxima(added, "input").values()) == [1, 3, 4]
    assert maxima(added, "output") == {"output.0": 8}
    assert found.producer("Tensor.mul.0.backward") == (added["name"], "output.0")
    assert found.call("Tensor.mul.0.backward").tensors["output.0"]["max"] == 16


def test_each_result_of_a_call_has_its_own_gradient(tmp_path: Path) -> None:
    w = weight(1, 2, 3, 4, 5, 6)

    def work() -> None:
        first, _, third = (w * 1).split(2)
        (first + third * 5).sum().backward()

    found = record(tmp_path, work)
    call = found.call("Tensor.split.0.backward")
    assert maxima(call, "input") == {"input.0": 1, "input.2": 5}
    assert found.producer(call["name"], "input.2") == ("Tensor.mul.1.backward", "output.0")
    assert maxima(call, "output") == {"output.0": 5}


def test_the_gradient_of_values_and_places_is_that_of_the_values(tmp_path: Path) -> None:
    w = weight(1, 5)
    found = record(tmp_path, lambda: torch.sort(w * 1)[0].sum().backward())
    assert maxima(found.call("Torch.sort.0.backward"), "input") == {"input.0": 1}


def test_a_second_pass_adds_to_the_gradient_of_the_first(tmp_path: Path) -> None:
    w = weight(1)

    def work() -> None:
        for factor in (2, 3):
            (w * factor).sum().backward()

    found = record(tmp_path, work)
    first, second = (found.call(f"Gradient.accumulate.{n}.backward") for n in range(2))
    assert maxima(first, "") == {"input.0": 2, "output.0": 2}
    assert maxima(second, "") == {"input.0": 3, "input.grad": 2, "output.0": 5}
    assert found.producer(second["name"]) == ("Tensor.mul.1.backward", "output.0")
    assert found.producer(second["name"], "input.grad") == (first["name"], "output.0")


def test_a_graph_that_is_kept_runs_backward_twice(tmp_path: Path) -> None:
    w = weight(1)

    def work() -> None:
        y = (w * 2).sum()
        y.backward(retain_graph=True)
        y.backward()

    found = record(tmp_path, work)
    assert [c["name"] for c in found.calls if c["api"] == "mul"].count("Tensor.mul.0.backward") == 2
    assert maxima(found.call("Gradient.accumulate.1.backward"), "output") == {"output.0": 4}


HOOKS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Torch.log": lambda gradient, early: torch.log(gradient - 1),
    "Tensor.log_": lambda gradient, early: gradient.sub_(1).log_(),
    "Torch.full": lambda gradient, early: early,
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_on_a_gradient_made_what_is_read_next(tmp_path: Path, name: str) -> None:
    """By a new tensor, in place, or with one that the very first call made."""
    w = weight(1)

    def work() -> None:
        early = torch.full((1,), -torch.inf)
        y = w * 2
        y.register_hook(lambda gradient: HOOKS[name](gradient, early))
        y.sum().backward()

    found = record(tmp_path, work)
    assert found.call("Tensor.mul.0.backward").tensors["input.0"]["has_neginf"]
    assert found.producer("Tensor.mul.0.backward") == (f"{name}.0.forward", "output.0")


def test_one_tensor_that_is_the_gradient_of_many_is_known_by_the_way_it_came(
    tmp_path: Path,
) -> None:
    """An addition hands on what came in, the same tensor to each of its inputs."""
    w = weight(1)

    def work() -> None:
        first, second, third = w * 2, w * 3, w * 5
        (third + (first + second)).sum().backward()

    found = record(tmp_path, work)
    inner, outer = (f"Tensor.add.{n}.backward" for n in range(2))
    assert found.producer(outer) == ("Tensor.sum.0.backward", "output.0")
    assert found.producer(inner) == (outer, "output.1")
    made = [found.producer(f"Tensor.mul.{n}.backward") for n in range(3)]
    assert made == [(inner, "output.0"), (inner, "output.1"), (outer, "output.0")]


def test_every_slot_of_a_packed_attention_is_there_once(tmp_path: Path) -> None:
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    x = torch.ones(1, 3, 4, requires_grad=True)
    found = record(tmp_path, lambda: attention(x, x, x)[0].sum().backward(), attention)
    (backward,) = (c for c in found.calls if c["name"].endswith("attention_forward.0.backward"))
    assert {"output.0", "output.1", "output.2"} & set(backward.tensors)


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_that_runs_again_is_marked(tmp_path: Path, reentrant: bool) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    x = torch.ones(1, 2, requires_grad=True)

    def work() -> None:
        checkpoint(model, x, use_reentrant=reentrant).sum().backward()

    found = record(tmp_path, work, model)
    linear = [call for call in found.calls if call["name"].startswith("Functional.linear")]
    forward = [call for call in linear if call["phase"] == "forward"]
    assert [(c["module"], c["recompute"]) for c in forward] == [
        ("0", False),
        ("2", False),
        ("0", True),
        ("2", True),
    ]
    assert forward[0].tensors["output.0"]["max"] == forward[2].tensors["output.0"]["max"]
    backward = [call for call in linear if call["phase"] == "backward"]
    assert [call["module"] for call in backward] == ["2", "0"]
    assert [call["api"] for call in found.calls].count("accumulate") >= 5


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_that_runs_again_raises_nothing(tmp_path: Path, reentrant: bool) -> None:
    """It ends early by an exception of PyTorch's own, when all that is needed is there."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    x = torch.ones(1, 2, requires_grad=True)
    found = record(tmp_path, lambda: checkpoint(model, x, use_reentrant=reentrant).sum().backward())
    assert [call["name"] for call in found.calls if call["state"] != "ok"] == []


def test_calls_of_a_hook_inside_of_backward_are_of_the_phase_backward(tmp_path: Path) -> None:
    w = weight(2)

    def scale(parameter: Tensor) -> None:
        assert parameter.grad is not None
        parameter.grad.mul_(10)

    w.register_post_accumulate_grad_hook(scale)
    found = record(tmp_path, lambda: (w * 3).sum().backward())
    scaled = found.call("Tensor.mul_")
    assert (scaled["phase"], scaled["recompute"]) == ("backward", False)
    assert maxima(scaled, "") == {"input.0": 3, "output.0": 30}
    assert found.producer("Tensor.mul_") == ("Tensor.mul.0.backward", "output.0")
    assert found.producer("Gradient.accumulate.0.backward", "inner.grad") == (
        "Tensor.mul_.0.forward",
        "output.0",
    )


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_an_update_is_one_call_with_its_parameters_and_gradients(
    tmp_path: Path, kind: Callable[..., torch.optim.Optimizer]
) -> None:
    model = nn.Linear(2, 1)
    optimizer = kind(model.parameters(), lr=0.1)

    def work() -> None:
        model(torch.ones(1, 2) * 30).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    before = [p.max().item() for p in model.parameters()]
    found = record(tmp_path, work, model)
    *_, clip, update = found.calls
    assert (clip["name"], clip["phase"]) == ("Optimizer.clip_grad_norm_.0.clip", "clip")
    gradients = {slot: clip.tensors[slot]["max"] for slot in clip.slots("input.grad")}
    assert gradients == {"input.grad.0": 30, "input.grad.1": 1}
    assert clip.tensors["output.total_norm"]["max"] == pytest.approx(1801**0.5)
    assert clip.tensors["output.grad.1"]["max"] == pytest.approx(1801**-0.5, rel=1e-5)
    assert (update["api"], update["kind"]) == (kind.__name__, "optimizer")
    assert update["phase"] == "optimizer"
    assert [update.tensors[slot]["max"] for slot in update.slots("input.param")] == before
    after = [p.max().item() for p in model.parameters()]
    assert [update.tensors[slot]["max"] for slot in update.slots("output.param")] == after
    for place in (0, 1):
        made = found.producer(update["name"], f"input.grad.{place}")
        assert made == (clip["name"], f"output.grad.{place}")
        assert update.tensors[f"input.param.{place}"]["direction"] == "parameter"


def replicated(rank: int, dump: Path, folder: str, buckets: str) -> None:
    """Train three steps, and keep what came out of it."""
    torch.manual_seed(rank)  # DistributedDataParallel hands out what rank 0 has
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
    options: dict[str, Any] = {"bucket_cap_mb": 1e-4} if buckets == "many" else {}
    options |= {"gradient_as_bucket_view": True} if buckets == "views" else {}
    replica = DistributedDataParallel(model, **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(10 + rank)
    for step in range(3):
        optimizer.zero_grad()
        x = torch.randn(5, 4)
        if folder == "recorded":
            with recording(dump / str(step), replica):
                replica(x).square().mean().backward()
                optimizer.step()
        else:
            replica(x).square().mean().backward()
            optimizer.step()
    torch.save([*model.parameters()], dump / f"{folder}-{rank}.pt")
    dist.barrier()


@pytest.mark.parametrize("buckets", ["one", "many", "views"])
def test_the_reduction_of_replicas_is_on_record_and_changes_no_bit(
    tmp_path: Path, buckets: str
) -> None:
    for folder in ("plain", "recorded"):
        Path(f"{tmp_path}.store").unlink(missing_ok=True)
        assert on_ranks(2, replicated, tmp_path, folder, buckets) == [0, 0]
    weights = [
        [torch.load(tmp_path / f"{folder}-{rank}.pt") for rank in range(2)]
        for folder in ("plain", "recorded")
    ]
    for plain, recorded in zip(*weights, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(plain, recorded, strict=True))
    for step in range(3):
        calls = [
            Record(tmp_path / str(step), rank=rank).call("DistributedDataParallel.all_reduce")
            for rank in range(2)
        ]
        assert_averaged(calls)


def assert_averaged(calls: list[Call]) -> None:
    for call in calls:
        assert (call["kind"], call["phase"], call["reduce_op"]) == ("comm", "backward", "AVG")
        assert (call["group_ranks"], call["group_seq"]) == ([0, 1], 0)
    own = [maxima(call, "input") for call in calls]
    assert own[0] != own[1]
    results = [maxima(call, "output") for call in calls]
    assert results[0] == results[1]
    assert len(results[0]) == len(own[0]) == 4
    for slot in calls[0].slots("input"):
        rows = [call.tensors[slot] for call in calls]
        average = sum(row["mean"] for row in rows) / 2
        result = calls[0].tensors[slot.replace("input", "output")]["mean"]
        assert result == pytest.approx(average, abs=1e-6)
