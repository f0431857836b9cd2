"""Trains a tiny Llama for a step under FSDP2 and saves it with its optimizer: one gloo rank."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import LlamaForCausalLM


def main() -> None:
    rank, world, model_folder, target = sys.argv[1:]
    where = f"file://{target}.store"
    dist.init_process_group("gloo", init_method=where, rank=int(rank), world_size=int(world))
    mesh = init_device_mesh("cpu", (int(world),))
    model = LlamaForCausalLM.from_pretrained(model_folder)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0)
    tokens = torch.arange(8).reshape(1, 8)
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    weights, state = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": state, "step": 1}, checkpoint_id=target)
    dist.barrier()
    dist.destroy_process_group()


main()
