"""Trains a tiny Llama for a step under DeepSpeed ZeRO and saves it: one gloo rank."""

from __future__ import annotations

import os
import sys

import torch


def main() -> None:
    rank, world, model_folder, target, stage, dtype, port = sys.argv[1:]
    os.environ |= {
        "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port, "DS_ACCELERATOR": "cpu",
    }  # fmt: skip
    import deepspeed
    from transformers import LlamaForCausalLM

    deepspeed.init_distributed("gloo")
    model = LlamaForCausalLM.from_pretrained(model_folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": int(stage), "stage3_param_persistence_threshold": 0},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "bf16": {"enabled": dtype == "bf16"},
    }
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
    tokens = torch.arange(8).reshape(1, 8)
    engine.backward(engine(input_ids=tokens, labels=tokens).loss)
    engine.step()
    engine.save_checkpoint(target)
    deepspeed.comm.barrier()
    deepspeed.comm.destroy_process_group()


main()
