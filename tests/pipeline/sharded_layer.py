"""A linear layer whose weight lies over the ranks of a mesh as a DTensor, recorded for one step."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from collectors import PrecisionDebugger

PLACEMENTS = {"columns": Shard(0), "rows": Shard(1), "fsdp": Shard(0)}


def run(rank: int, dump: Path, layout: str, gain: float = 1.0) -> None:
    """Record one call; the weight's part on rank 1 is larger by `gain`.

    Args:
        rank: of this process.
        dump: where shards go.
        layout: whole; columns or rows, which is how tensor parallelism cuts a weight; fsdp, which
            gathers it first.
        gain: 1 leaves it as it is.
    """
    generator = torch.Generator().manual_seed(3)
    x, weight = torch.randn(4, 6, generator=generator), torch.randn(8, 6, generator=generator)
    if layout != "whole":
        mesh = init_device_mesh("cpu", (2,))
        weight = distribute_tensor(weight, mesh, [PLACEMENTS[layout]])
        if layout != "fsdp":
            x = distribute_tensor(x, mesh, [Replicate()])
        if rank == 1:
            weight.to_local().mul_(gain)
    debugger = PrecisionDebugger(dump_path=dump)
    debugger.start()
    weight = weight.abs()
    F.linear(x, weight.full_tensor() if layout == "fsdp" else weight)
    debugger.stop()
    debugger.step()
