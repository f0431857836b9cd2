"""What a communication call says of itself, on real gloo ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from .recording import Call, Record, on_ranks, recording


def run(dump: Path, world: int, body: Callable[[int], None], *args: Any) -> list[list[Call]]:
    """Return the communication calls of each rank of a step that runs `body(rank)`."""
    assert on_ranks(world, recorded, dump, body, *args) == [0] * world
    return [
        [call for call in Record(dump, rank=rank).calls if call["kind"] == "comm"]
        for rank in range(world)
    ]


def recorded(rank: int, dump: Path, body: Callable[..., None], *args: Any) -> None:
    with recording(dump):
        body(rank, *args)


def every_collective(rank: int) -> None:
    def x() -> torch.Tensor:
        return torch.full((2,), rank + 1.0)

    def dirty(size: int = 2) -> torch.Tensor:
        return torch.full((size,), torch.nan)

    dist.all_reduce(x(), op=dist.ReduceOp.MAX)
    dist.broadcast(x() if rank == 1 else dirty(), src=1)
    dist.reduce(x(), dst=1)
    dist.all_gather([dirty(), dirty()], x())
    dist.all_gather_into_tensor(dirty(4), x())
    dist.gather(x(), [dirty(), dirty()] if rank == 1 else None, dst=1)
    dist.scatter(dirty(), [x(), x()] if rank == 1 else None, src=1)
    dist.reduce_scatter_tensor(dirty(1), x())
    dist.all_to_all_single(dirty(), x())
    if rank:
        dist.recv(dirty(), src=0, tag=7)
    else:
        dist.send(x(), dst=1, tag=7)
    dist.barrier()


WORLD = list(range(2))


@pytest.fixture(scope="module")
def collectives(tmp_path_factory: pytest.TempPathFactory) -> list[list[Call]]:
    return run(tmp_path_factory.mktemp("comm") / "dump", 2, every_collective)


def one(calls: list[Call], api: str) -> Call:
    (call,) = [call for call in calls if call["api"] == api]
    return call


def test_each_rank_numbers_the_calls_of_a_group_alike(collectives: list[list[Call]]) -> None:
    numbered = [
        [(c["api"], c["group_seq"]) for c in calls if c["group_seq"] is not None]
        for calls in collectives
    ]
    assert numbered[0] == numbered[1]
    assert [number for _, number in numbered[0]] == list(range(10))
    assert {tuple(c["group_ranks"]) for calls in collectives for c in calls} == {(0, 1)}
    assert len({c["group_id"] for calls in collectives for c in calls}) == 1


@pytest.mark.parametrize(
    ("api", "root", "op"),
    [
        ("all_reduce", None, "MAX"),
        ("broadcast", 1, None),
        ("reduce", 1, "SUM"),
        ("gather", 1, None),
        ("scatter", 1, None),
        ("all_gather", None, None),
        ("reduce_scatter_tensor", None, "SUM"),
        ("all_to_all_single", None, None),
        ("barrier", None, None),
    ],
)
def test_root_and_reduction(
    collectives: list[list[Call]], api: str, root: int | None, op: str | None
) -> None:
    for calls in collectives:
        call = one(calls, api)
        assert (call["root"], call["reduce_op"], call["peer"]) == (root, op, None)
        assert call["async"] is False


def test_peer_and_tag(collectives: list[list[Call]]) -> None:
    sent, received = one(collectives[0], "send"), one(collectives[1], "recv")
    assert (sent["peer"], sent["tag"], sent["root"]) == (1, 7, None)
    assert (received["peer"], received["tag"], received["root"]) == (0, 7, None)


@pytest.mark.parametrize(
    ("api", "rank", "buffers", "results"),
    [
        ("all_gather", 0, ["input.0.0", "input.0.1"], [1.0, 2.0]),
        ("all_gather_into_tensor", 0, ["input.0"], [2.0]),
        ("broadcast", 0, ["input.0"], [2.0]),
        ("broadcast", 1, [], [2.0]),
        ("reduce", 1, [], [3.0]),
        ("reduce", 0, [], []),
        ("gather", 1, ["input.gather_list.0", "input.gather_list.1"], [1.0, 2.0]),
        ("gather", 0, [], []),
        ("scatter", 0, ["input.0"], [2.0]),
        ("scatter", 1, ["input.0"], [2.0]),
        ("reduce_scatter_tensor", 0, ["input.0"], [3.0]),
        ("all_to_all_single", 0, ["input.0"], [2.0]),
        ("recv", 1, ["input.0"], [1.0]),
        ("send", 0, [], []),
    ],
)
def test_memory_that_is_only_written_is_a_buffer_and_what_arrives_is_the_result(
    collectives: list[list[Call]], api: str, rank: int, buffers: list[str], results: list[float]
) -> None:
    call = one(collectives[rank], api)
    roles = {slot: row["role"] for slot, row in call.tensors.items()}
    assert [slot for slot, role in roles.items() if role == "buffer"] == buffers
    assert [call.tensors[slot]["max"] for slot in call.slots("output")] == results
    assert not any(call.tensors[slot]["has_nan"] for slot in call.slots("output"))


def test_dirty_buffers_are_no_fault(tmp_path: Path, analyze: Callable[..., Any]) -> None:
    """A receive buffer full of NaN into which a peer sends ones."""
    run(tmp_path / "dump", 2, every_collective)
    result = analyze(tmp_path / "dump")
    made = {origin["call"] for origin in result["origins"]}
    assert made <= {f"Torch.full.{n}.forward" for n in range(40)}


def overlapped(rank: int) -> None:
    x = torch.tensor([rank + 1.0])
    work = dist.all_reduce(x, async_op=True)
    torch.ones(3).exp()
    work.wait()
    torch.positive(x)


def test_an_asynchronous_result_is_read_after_the_wait(tmp_path: Path) -> None:
    """Inputs 1 and 2, a sum, other work, then the wait: 3 on both."""
    for rank, (call,) in enumerate(run(tmp_path, 2, overlapped)):
        assert call["async"] is True
        assert call.tensors["input.0"]["max"] == rank + 1
        assert call.tensors["output.0"]["max"] == 3
        assert Record(tmp_path, rank=rank).producer("Torch.positive") == (call["name"], "output.0")
        assert Record(tmp_path, rank=rank).names[0] == "Torch.tensor.0.forward"


def unwaited(rank: int) -> None:
    dist.all_reduce(torch.ones(1), async_op=True)


def test_what_nobody_waited_for_has_its_result_only_if_it_was_there(tmp_path: Path) -> None:
    for (call,) in run(tmp_path, 2, unwaited):
        assert list(call.tensors) == ["input.0", "output.0"]
        assert call.tensors["output.0"]["max"] in (2.0, None)


def in_a_subgroup(rank: int, spelling: str) -> None:
    group = dist.new_group([1, 2])
    if rank == 0:
        return
    x = torch.full((1,), float(rank))
    both = [torch.zeros(1), torch.zeros(1)]
    if spelling == "global":
        dist.broadcast(x, src=2, group=group)
        dist.gather(x, both if rank == 2 else None, dst=2, group=group)
        dist.send(x, 2, group) if rank == 1 else dist.recv(x, 1, group)
    else:
        dist.broadcast(x, group_src=1, group=group)
        dist.gather(x, both if rank == 2 else None, group_dst=1, group=group)
        if rank == 1:
            dist.send(x, group=group, group_dst=1)
        else:
            dist.recv(x, group=group, group_src=0)
    dist.all_reduce(x, group=group)


@pytest.mark.parametrize("spelling", ["global", "group"])
def test_ends_in_a_subgroup_are_global_ranks(tmp_path: Path, spelling: str) -> None:
    nobody, *members = run(tmp_path, 3, in_a_subgroup, spelling)
    assert nobody == []
    for rank, calls in enumerate(members, 1):
        assert [c["root"] for c in calls] == [2, 2, None, None]
        assert [c["peer"] for c in calls] == [None, None, 3 - rank, None]
        assert [c["group_seq"] for c in calls] == [0, 1, None, 2]
        assert all(c["group_ranks"] == [1, 2] for c in calls)


def for_others(rank: int) -> None:
    group = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1), group=group)
    dist.all_reduce(torch.ones(1))


@pytest.mark.filterwarnings("ignore")
def test_a_call_for_a_group_of_others_does_not_stop_the_record(tmp_path: Path) -> None:
    *members, outsider = run(tmp_path, 3, for_others)
    assert [len(calls) for calls in members] == [2, 2]
    assert outsider[-1]["group_ranks"] == [0, 1, 2]


def batched(rank: int) -> None:
    other, there = 1 - rank, torch.zeros(2)
    ops = [
        dist.P2POp(dist.isend, torch.full((2,), rank + 1.0), other),
        dist.P2POp(dist.irecv, there, other),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    torch.positive(there)


def test_a_batch_of_sends_and_receives_is_recorded_one_by_one(tmp_path: Path) -> None:
    for rank, calls in enumerate(run(tmp_path, 2, batched)):
        assert sorted(c["api"] for c in calls) == ["irecv", "isend"]
        assert {c["peer"] for c in calls} == {1 - rank}
        received = one(calls, "irecv")
        assert received.tensors["output.0"]["max"] == 2 - rank
        made = Record(tmp_path, rank=rank).producer("Torch.positive")
        assert made == (received["name"], "output.0")
