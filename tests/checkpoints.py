"""One tiny Llama, written in the layouts of several frameworks, and compared in this process."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file

from pipeline.checkpoint_compare import Question, compare_checkpoints
from pipeline.settings import limits

HEADS, GROUPS, SIZE, HIDDEN, FFN, LAYERS, WORDS = 4, 2, 8, 32, 64, 4, 101
PER_GROUP = HEADS // GROUPS * SIZE

Weights = dict[str, "np.ndarray[Any, np.dtype[np.float32]]"]


def compare(a: Path, b: Path, **options: Any) -> dict[str, Any]:
    """Return the result document of two checkpoints, computed in this process."""
    with compare_checkpoints(Question(a, b, **options), limits(1)) as (result, _):
        return result


def found(result: Mapping[str, Any], *statuses: str) -> list[tuple[str, Any]]:
    """Return (name, first index) of the findings with a status; by default those that are none."""
    wanted = statuses or ("different", "only_in_a", "only_in_b", "incomparable")
    return [(f["name"], f.get("first_index")) for f in result["findings"] if f["status"] in wanted]


def llama(seed: int = 0) -> Weights:
    """Return weights under Hugging Face's names."""
    random = np.random.default_rng(seed)

    def matrix(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
        return random.standard_normal(shape, dtype=np.float32)

    weights = {"model.embed_tokens.weight": matrix(WORDS, HIDDEN)}
    for n in range(LAYERS):
        layer = f"model.layers.{n}"
        weights |= {
            f"{layer}.input_layernorm.weight": matrix(HIDDEN),
            f"{layer}.self_attn.q_proj.weight": matrix(HEADS * SIZE, HIDDEN),
            f"{layer}.self_attn.k_proj.weight": matrix(GROUPS * SIZE, HIDDEN),
            f"{layer}.self_attn.v_proj.weight": matrix(GROUPS * SIZE, HIDDEN),
            f"{layer}.self_attn.o_proj.weight": matrix(HIDDEN, HEADS * SIZE),
            f"{layer}.post_attention_layernorm.weight": matrix(HIDDEN),
            f"{layer}.mlp.gate_proj.weight": matrix(FFN, HIDDEN),
            f"{layer}.mlp.up_proj.weight": matrix(FFN, HIDDEN),
            f"{layer}.mlp.down_proj.weight": matrix(HIDDEN, FFN),
        }
    weights |= {"model.norm.weight": matrix(HIDDEN), "lm_head.weight": matrix(WORDS, HIDDEN)}
    return weights


def write_safetensors(folder: Path, weights: Weights, shards: int = 3) -> Path:
    """Write shards with an index, as transformers does."""
    folder.mkdir(parents=True)
    names = list(weights)
    index = {}
    for n in range(shards):
        file = f"model-{n + 1:05d}-of-{shards:05d}.safetensors"
        index |= dict.fromkeys(names[n::shards], file)
        save_file({name: weights[name] for name in names[n::shards]}, folder / file)
    table = {"metadata": {"total_size": 0}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(table))
    return folder


def megatron_layer(weights: Weights, n: int) -> Weights:
    """Return one layer under Megatron-Core's names, whole."""
    at = f"model.layers.{n}"
    q, k, v = (weights[f"{at}.self_attn.{x}_proj.weight"] for x in "qkv")
    groups = [
        np.concatenate([q[g * PER_GROUP :][:PER_GROUP], k[g * SIZE :][:SIZE], v[g * SIZE :][:SIZE]])
        for g in range(GROUPS)
    ]
    return {
        "input_layernorm.weight": weights[f"{at}.input_layernorm.weight"],
        "self_attention.linear_qkv.weight": np.concatenate(groups),
        "self_attention.linear_proj.weight": weights[f"{at}.self_attn.o_proj.weight"],
        "pre_mlp_layernorm.weight": weights[f"{at}.post_attention_layernorm.weight"],
        "mlp.linear_fc1.weight": np.concatenate(
            [weights[f"{at}.mlp.gate_proj.weight"], weights[f"{at}.mlp.up_proj.weight"]]
        ),
        "mlp.linear_fc2.weight": weights[f"{at}.mlp.down_proj.weight"],
    }


def split(name: str, whole: np.ndarray[Any, Any], rank: int, tp: int) -> np.ndarray[Any, Any]:
    """Return what one tensor-parallel rank holds of a weight."""
    if "linear_fc1" in name:
        halves = np.split(whole, 2)
        return np.concatenate([np.split(half, tp)[rank] for half in halves])
    if any(word in name for word in ("linear_qkv", "embedding", "output_layer")):
        return np.split(whole, tp)[rank]
    if "linear_proj" in name or "linear_fc2" in name:
        return np.split(whole, tp, axis=1)[rank]
    return whole


def stages(pp: int, vpp: int = 1) -> list[list[list[int]]]:
    """Return for each stage and chunk the numbers of its layers."""
    each = LAYERS // (pp * vpp)
    return [
        [list(range((c * pp + p) * each, (c * pp + p + 1) * each)) for c in range(vpp)]
        for p in range(pp)
    ]


def write_megatron(
    folder: Path,
    weights: Weights,
    tp: int = 1,
    layers: list[list[list[int]]] | None = None,
    *,
    divisible: int = 1,
    vocab_size: int | None = WORDS,
    edit: Callable[[str, Any], tuple[str, Any]] = lambda name, value: (name, value),
) -> Path:
    """Write a file a rank, as Megatron's `torch` format does.

    Args:
        layers: for each stage and chunk the numbers of its layers.
        divisible: the vocabulary is padded to a multiple of it times `tp`; padding is arbitrary.
        edit: gives other names and values to entries.
    """
    layers = layers or stages(1)
    rows = -(-WORDS // (divisible * tp)) * divisible * tp
    random = np.random.default_rng(tp)
    fill = random.standard_normal((rows - WORDS, HIDDEN), dtype=np.float32)
    embedding = np.concatenate([weights["model.embed_tokens.weight"], fill])
    head = np.concatenate([weights["lm_head.weight"], fill])
    args = argparse.Namespace(
        tensor_model_parallel_size=tp, pipeline_model_parallel_size=len(layers),
        virtual_pipeline_model_parallel_size=len(layers[0]) if len(layers[0]) > 1 else None,
        num_layers=LAYERS, hidden_size=HIDDEN, num_attention_heads=HEADS, kv_channels=SIZE,
        group_query_attention=True, num_query_groups=GROUPS, swiglu=True, vocab_size=vocab_size,
        make_vocab_size_divisible_by=divisible, untie_embeddings_and_output_weights=True,
    )  # fmt: skip
    for p, chunks in enumerate(layers):
        for rank in range(tp):
            state: dict[str, Any] = {"args": args, "checkpoint_version": 3.0, "iteration": 7}
            for c, numbers in enumerate(chunks):
                entries: dict[str, Any] = {}
                if p == 0 and c == 0:
                    entries["embedding.word_embeddings.weight"] = embedding
                for local, n in enumerate(numbers):
                    for key, value in megatron_layer(weights, n).items():
                        entries[f"decoder.layers.{local}.{key}"] = value
                if p == len(layers) - 1 and c == len(chunks) - 1:
                    entries["decoder.final_layernorm.weight"] = weights["model.norm.weight"]
                    entries["output_layer.weight"] = head
                parts = {
                    k: torch.from_numpy(split(k, v, rank, tp).copy()) for k, v in entries.items()
                }
                state["model" if len(chunks) == 1 else f"model{c}"] = dict(
                    edit(k, v) for k, v in parts.items()
                )
            name = f"mp_rank_{rank:02d}" + f"_{p:03d}" * (len(layers) > 1)
            (folder / "iter_0000007" / name).mkdir(parents=True)
            torch.save(state, folder / "iter_0000007" / name / "model_optim_rng.pt")
    (folder / "latest_checkpointed_iteration.txt").write_text("7")
    return folder


DCP = """
import sys, torch, numpy as np
import torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from safetensors.numpy import load_file
rank, world, source, *targets = sys.argv[1:]
where = f"file://{source}/store"
dist.init_process_group("gloo", init_method=where, rank=int(rank), world_size=int(world))
mesh = init_device_mesh("cpu", (int(world),))
rows = lambda array: distribute_tensor(torch.from_numpy(array), mesh, [Shard(0)])
for target in targets:
    weights = load_file(f"{source}/{target.rpartition('/')[2]}.safetensors")
    state = {"model": {name: rows(array) for name, array in weights.items()}}
    dcp.save(state, checkpoint_id=target)
dist.barrier()
dist.destroy_process_group()
"""


def write_dcp(folder: Path, ranks: int, models: Mapping[str, Weights]) -> None:
    """Write each model as `folder/NAME` by torch.distributed.checkpoint, from real gloo ranks."""
    source = folder.parent / f"{folder.name}_source"
    source.mkdir(parents=True)
    folder.mkdir(parents=True)
    for name, weights in models.items():
        save_file(weights, source / f"{name}.safetensors")
    targets = [str(folder / name) for name in models]
    command = [sys.executable, "-W", "ignore", "-c", DCP]
    workers = [
        subprocess.Popen([*command, str(rank), str(ranks), str(source), *targets])
        for rank in range(ranks)
    ]
    assert [worker.wait(timeout=240) for worker in workers] == [0] * ranks
