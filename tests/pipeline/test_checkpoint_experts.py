"""Mixtures of experts in every form that Megatron has, against Hugging Face's."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

from tests.checkpoints import compare, found

EXPERTS, HIDDEN, FFN = 4, 6, 8
State = dict[str, torch.Tensor]


def mixtral() -> State:
    torch.manual_seed(0)
    moe = "model.layers.{}.block_sparse_moe"
    weights = {}
    for layer in range(2):
        at = moe.format(layer)
        weights[f"{at}.gate.weight"] = torch.randn(EXPERTS, HIDDEN)
        for e in range(EXPERTS):
            weights[f"{at}.experts.{e}.w1.weight"] = torch.randn(FFN, HIDDEN)
            weights[f"{at}.experts.{e}.w3.weight"] = torch.randn(FFN, HIDDEN)
            weights[f"{at}.experts.{e}.w2.weight"] = torch.randn(HIDDEN, FFN)
    return weights


def parts(weights: State, layer: int, e: int, tp: int, rank: int) -> tuple[torch.Tensor, ...]:
    """Return fc1 and fc2 of one expert on one tensor-parallel rank."""
    at = f"model.layers.{layer}.block_sparse_moe.experts.{e}"
    gate, up = (weights[f"{at}.{w}.weight"].chunk(tp)[rank] for w in ("w1", "w3"))
    return torch.cat([gate, up]), weights[f"{at}.w2.weight"].chunk(tp, 1)[rank].contiguous()


def sequential(layers: str, both: list[tuple[torch.Tensor, ...]]) -> State:
    found = {}
    for e, (fc1, fc2) in enumerate(both):
        found[f"{layers}.local_experts.{e}.linear_fc1.weight"] = fc1
        found[f"{layers}.local_experts.{e}.linear_fc2.weight"] = fc2
    return found


def te_grouped(layers: str, both: list[tuple[torch.Tensor, ...]]) -> State:
    found = {}
    for e, (fc1, fc2) in enumerate(both):
        found[f"{layers}.linear_fc1.weight{e}"] = fc1
        found[f"{layers}.linear_fc2.weight{e}"] = fc2
    return found


def grouped(layers: str, both: list[tuple[torch.Tensor, ...]]) -> State:
    """(experts, hidden, 2 x ffn) in memory, under a shape of two dimensions."""
    first = torch.stack([fc1.t() for fc1, _ in both]).contiguous()
    second = torch.stack([fc2.t() for _, fc2 in both]).contiguous()
    return {
        f"{layers}.weight1": first.view(HIDDEN, -1),
        f"{layers}.weight2": second.view(-1, HIDDEN),
    }


def write(
    folder: Path, weights: State, form: Callable[..., State], tp: int, ep: int, etp: int
) -> Path:
    args = argparse.Namespace(
        tensor_model_parallel_size=tp, pipeline_model_parallel_size=1, num_experts=EXPERTS,
        expert_model_parallel_size=ep, expert_tensor_parallel_size=etp, swiglu=True,
    )  # fmt: skip
    each = EXPERTS // ep
    ranks = (
        [(t, t) for t in range(tp)] if etp < tp else [(t, p) for t in range(tp) for p in range(ep)]
    )
    for t, p in ranks:
        model: dict[str, Any] = {}
        for layer in range(2):
            at = f"decoder.layers.{layer}.mlp"
            router = weights[f"model.layers.{layer}.block_sparse_moe.gate.weight"]
            model[f"{at}.router.weight"] = router
            own = range(p * each, (p + 1) * each)
            both = [parts(weights, layer, e, etp, t % etp) for e in own]
            model |= form(f"{at}.experts", both)
        path = folder / (f"mp_rank_{t:02d}" + f"_{p:03d}" * (ep > 1))
        path.mkdir(parents=True)
        torch.save({"args": args, "model": model}, path / "model_optim_rng.pt")
    return folder


SIZES = [(1, 1, 1), (2, 1, 2), (1, 2, 1), (2, 2, 2), (2, 2, 1)]


@pytest.mark.parametrize("form", [sequential, te_grouped, grouped])
@pytest.mark.parametrize(("tp", "ep", "etp"), SIZES)
def test_experts(tmp_path: Path, form: Callable[..., State], tp: int, ep: int, etp: int) -> None:
    weights = mixtral()
    save_file(weights, tmp_path / "a.safetensors")
    write(tmp_path / "b", weights, form, tp, ep, etp)
    result = compare(tmp_path / "a.safetensors", tmp_path / "b")
    assert found(result) == []
    assert (result["verdict"], result["read"]["equal"]) == ("same", 2 * (1 + 3 * EXPERTS))
    assert result["warnings"] == []
    name = "model.layers.1.block_sparse_moe.experts.3.w3.weight"
    weights[name][5, 2] += 1
    other = write(tmp_path / "c", weights, form, tp, ep, etp)
    assert found(compare(tmp_path / "a.safetensors", other)) == [(name, [5, 2])]
    mine = "decoder.layers.1.mlp.experts.local_experts.3.linear_fc1.weight"
    assert found(compare(other, tmp_path / "a.safetensors")) == [(mine, [FFN + 5, 2])]
    assert found(compare(tmp_path / "b", other)) == [(mine, [FFN + 5, 2])]


def test_experts_in_torch_dist(tmp_path: Path) -> None:
    """Layers and experts are dimensions of one tensor."""
    weights = mixtral()
    save_file(weights, tmp_path / "a.safetensors")
    both = [[parts(weights, layer, e, 1, 0) for e in range(EXPERTS)] for layer in range(2)]
    at = "decoder.layers.mlp"
    gates = [weights[f"model.layers.{n}.block_sparse_moe.gate.weight"] for n in range(2)]
    state = {
        f"{at}.experts.experts.linear_fc1.weight": torch.stack(
            [torch.stack([fc1 for fc1, _ in layer]) for layer in both]
        ),
        f"{at}.experts.experts.linear_fc2.weight": torch.stack(
            [torch.stack([fc2 for _, fc2 in layer]) for layer in both]
        ),
        f"{at}.router.weight": torch.stack(gates),
    }
    dcp.save(state, checkpoint_id=tmp_path / "b", no_dist=True)
    args = argparse.Namespace(num_experts=EXPERTS, swiglu=True)
    torch.save({"args": args, "iteration": 3}, tmp_path / "b" / "common.pt")
    result = compare(tmp_path / "a.safetensors", tmp_path / "b")
    assert (result["verdict"], result["read"]["equal"]) == ("same", 2 * (1 + 3 * EXPERTS))
    legacy = write(tmp_path / "c", weights, grouped, 2, 2, 2)
    assert compare(tmp_path / "b", legacy)["verdict"] == "same"


def test_latent_attention_and_shared_experts(tmp_path: Path) -> None:
    """DeepSeek's names and Megatron's."""
    torch.manual_seed(0)
    names = {
        "self_attn.q_a_proj.weight": "self_attention.linear_q_down_proj.weight",
        "self_attn.q_a_layernorm.weight": "self_attention.linear_q_up_proj.layer_norm_weight",
        "self_attn.q_b_proj.weight": "self_attention.linear_q_up_proj.weight",
        "self_attn.kv_a_proj_with_mqa.weight": "self_attention.linear_kv_down_proj.weight",
        "self_attn.kv_a_layernorm.weight": "self_attention.linear_kv_up_proj.layer_norm_weight",
        "self_attn.kv_b_proj.weight": "self_attention.linear_kv_up_proj.weight",
        "self_attn.o_proj.weight": "self_attention.linear_proj.weight",
        "mlp.gate.weight": "mlp.router.weight",
        "mlp.gate.e_score_correction_bias": "mlp.router.expert_bias",
        "mlp.shared_experts.down_proj.weight": "mlp.shared_experts.linear_fc2.weight",
    }
    shapes = {"layernorm": (6,), "bias": (6,)}
    source = {
        name: torch.randn(next((s for word, s in shapes.items() if word in name), (6, 4)))
        for name in names
    }
    gate, up = torch.randn(8, 4), torch.randn(8, 4)
    hf = {f"model.layers.0.{name}": weight for name, weight in source.items()}
    hf["model.layers.0.mlp.shared_experts.gate_proj.weight"] = gate
    hf["model.layers.0.mlp.shared_experts.up_proj.weight"] = up
    save_file(hf, tmp_path / "a.safetensors")
    for rank in range(2):
        model = {}
        for name, weight in source.items():
            own = names[name]
            split = (
                0 if "up_proj.weight" in own else 1 if "proj.weight" in own or "fc2" in own else -1
            )
            whole = split < 0 or "down_proj" in own
            model[f"decoder.layers.0.{own}"] = (
                weight if whole else weight.chunk(2, split)[rank].clone()
            )
        fc1 = torch.cat([gate.chunk(2)[rank], up.chunk(2)[rank]])
        model["decoder.layers.0.mlp.shared_experts.linear_fc1.weight"] = fc1
        path = tmp_path / "b" / f"mp_rank_{rank:02d}"
        path.mkdir(parents=True)
        args = argparse.Namespace(tensor_model_parallel_size=2, swiglu=True)
        torch.save({"args": args, "model": model}, path / "model_optim_rng.pt")
    result = compare(tmp_path / "a.safetensors", tmp_path / "b")
    assert found(result) == []
    assert (result["verdict"], result["read"]["equal"]) == ("same", len(hf))
