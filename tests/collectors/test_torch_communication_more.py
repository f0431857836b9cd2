"""Communication that hides: objects, functional collectives, DTensor, names bound early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.distributed import all_reduce, barrier, isend
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from .recording import Record, on_ranks
from .test_torch_communication import one, recorded, run


def objects(rank: int) -> None:
    found: list[Any] = [None] * 3
    dist.all_gather_object(found, {"rank": rank})
    if rank == 0:
        dist.send_object_list([1], dst=1)
    elif rank == 1:
        dist.recv_object_list([None], src=0)
    sent: list[Any] = [rank]
    dist.broadcast_object_list(sent, src=2)
    dist.barrier()
    dist.all_reduce(torch.ones(1))


@pytest.fixture(scope="module")
def of_objects(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run(tmp_path_factory.mktemp("objects") / "dump", 3, objects)


def test_calls_that_carry_objects_are_recorded_by_name_alone(of_objects: Any) -> None:
    everywhere = ["all_gather_object", "broadcast_object_list", "barrier", "all_reduce"]
    assert [c["api"] for c in of_objects[2]] == everywhere
    assert [c["api"] for c in of_objects[0]] == [
        *everywhere[:1],
        "send_object_list",
        *everywhere[1:],
    ]
    assert one(of_objects[0], "broadcast_object_list")["root"] == 2


def test_objects_between_two_ranks_are_no_calls_of_the_group(of_objects: Any) -> None:
    assert one(of_objects[0], "send_object_list")["peer"] == 1
    assert one(of_objects[1], "recv_object_list")["peer"] == 0
    assert [one(calls, "all_reduce")["group_seq"] for calls in of_objects] == [3, 3, 3]


def bound_early(rank: int) -> None:
    all_reduce(torch.ones(1))
    barrier()
    isend_or_not = dist.P2POp(isend if rank == 0 else dist.irecv, torch.zeros(1), 1 - rank)
    dist.batch_isend_irecv([isend_or_not])[0].wait()


def test_names_bound_before_the_start_are_recorded(tmp_path: Path) -> None:
    """Taken with `from torch.distributed import ...` when the script was loaded."""
    first, second = run(tmp_path, 2, bound_early)
    assert [c["api"] for c in first] == ["all_reduce", "barrier", "isend"]
    assert [c["api"] for c in second] == ["all_reduce", "barrier", "irecv"]


def from_anyone(rank: int) -> None:
    if rank:
        dist.send(torch.ones(1), 0)
    else:
        dist.recv(torch.zeros(1))


def test_who_sent_to_a_receive_from_anyone_is_on_record(tmp_path: Path) -> None:
    (received,), _ = run(tmp_path, 2, from_anyone)
    assert received["peer"] == 1


def functional(rank: int) -> None:
    group = dist.group.WORLD
    x = torch.full((2,), rank + 1.0)
    torch.positive(funcol.all_reduce(x, "max", group))
    torch.positive(funcol.all_gather_tensor(x, 0, group))
    torch.positive(funcol.reduce_scatter_tensor(x, "sum", 0, group))
    torch.positive(funcol.broadcast(x, 1, group))
    torch.positive(funcol.all_to_all_single(x, None, None, group))


def test_functional_collectives(tmp_path: Path) -> None:
    results = {"all_reduce": 2, "all_gather_into_tensor": 2, "reduce_scatter_tensor": 3}
    results |= {"broadcast": 2, "all_to_all_single": 2}
    for rank, calls in enumerate(run(tmp_path, 2, functional)):
        assert [c["api"] for c in calls] == list(results)
        assert [c["group_seq"] for c in calls] == [0, 1, 2, 3, 4]
        assert [c["reduce_op"] for c in calls] == ["MAX", None, "SUM", None, None]
        assert all(c["group_ranks"] == [0, 1] for c in calls)
        assert [c.tensors["output.0"]["max"] for c in calls] == list(results.values())
        assert one(calls, "broadcast")["root"] == 1
        found = Record(tmp_path, rank=rank)
        for number, call in enumerate(calls):
            made = found.producer(f"Torch.positive.{number}.forward")
            while made and not made[0].startswith("Distributed"):
                made = found.producer(made[0])
            assert made == (call["name"], "output.0")


def of_dtensors(rank: int) -> None:
    mesh = init_device_mesh("cpu", (2,))
    left = distribute_tensor(torch.ones(4, 4), mesh, [Shard(1)])
    right = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)])
    product = left @ right
    torch.positive(product.redistribute(mesh, [Replicate()]))


def test_a_product_of_dtensors_whose_parts_are_summed_over_ranks(tmp_path: Path) -> None:
    for rank, calls in enumerate(run(tmp_path, 2, of_dtensors)):
        (summed,) = [c for c in calls if c["api"] == "all_reduce"]
        assert summed.tensors["input.0"]["max"] == 2
        assert summed.tensors["output.0"]["max"] == 4
        found = Record(tmp_path, rank=rank)
        (product,) = [c for c in found.calls if c["api"] == "matmul"]
        assert '"S(1)"' in product.tensors["input.0"]["layout"].replace("Shard(dim=1)", "S(1)")
        assert product.tensors["input.0"]["shape"] == [4, 4]
        made = found.producer("Torch.positive")
        assert made is not None
        assert "redistribute" in made[0] or made[0] == summed["name"]


def failing(rank: int) -> None:
    with pytest.raises(ValueError, match="complex"):
        dist.all_reduce(torch.ones(rank + 1, dtype=torch.complex64), op=dist.ReduceOp.MAX)
    dist.all_reduce(torch.ones(1))


def test_a_collective_that_raises_is_recorded_with_its_group(tmp_path: Path) -> None:
    for calls in run(tmp_path, 2, failing):
        assert [c["state"] for c in calls] == ["raised", "ok"]
        assert calls[0]["group_ranks"] == [0, 1]
        assert calls[0]["group_seq"] == 0


def two_starts(rank: int, dump: Path) -> None:
    isend_before = dist.isend
    recorded(rank, dump, lambda _: dist.barrier())
    assert dist.isend is isend_before
    dist.barrier()


def test_nothing_is_recorded_after_the_stop(tmp_path: Path) -> None:
    assert on_ranks(2, two_starts, tmp_path) == [0, 0]
    assert Record(tmp_path).names == ["Distributed.barrier.0.forward"]
