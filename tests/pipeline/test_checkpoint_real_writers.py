"""Checkpoints that the real libraries write here and now, on the CPU, each against its source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from huggingface_hub import save_torch_state_dict
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM

from tests.checkpoints import compare, found
from tests.ports import free_port

WRITERS = Path(__file__).parent / "writers"
SIZES = {
    "vocab_size": 101, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32,
}  # fmt: skip
TENSORS = 3 + 2 * 9


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that transformers wrote."""
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("llama")
    config = LlamaConfig(**SIZES, tie_word_embeddings=False)
    LlamaForCausalLM(config).save_pretrained(folder / "hf", max_shard_size="30KB")
    assert len(list((folder / "hf").glob("*.safetensors"))) > 1
    return folder / "hf"


def changed(model: Path, target: Path, name: str, index: tuple[int, int]) -> Path:
    """Return a copy of a model with one other element, as one file."""
    weights: dict[str, torch.Tensor] = {}
    for file in model.glob("*.safetensors"):
        weights |= load_file(file)
    weights[name][index] += 0.5
    target.mkdir()
    save_file(weights, target / "model.safetensors", {"format": "pt"})
    return target


def run_ranks(script: str, ranks: int, *arguments: object) -> None:
    command = [sys.executable, "-W", "ignore", str(WRITERS / script)]
    workers = [
        subprocess.Popen(
            [*command, str(rank), str(ranks), *map(str, arguments)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(ranks)
    ]  # fmt: skip
    said = [worker.communicate(timeout=200)[1] for worker in workers]
    for rank, worker in enumerate(workers):
        assert worker.returncode == 0, f"rank {rank}: {said[rank][-2000:]}"


NAME, INDEX = "model.layers.1.self_attn.k_proj.weight", (9, 3)


@pytest.mark.parametrize("ranks", [2, 4])
def test_fsdp2(model: Path, tmp_path: Path, ranks: int) -> None:
    run_ranks("write_fsdp.py", ranks, model, tmp_path / "dcp")
    result = compare(model, tmp_path / "dcp")
    assert (result["verdict"], result["read"]["equal"]) == ("same", TENSORS)
    other = changed(model, tmp_path / "other", NAME, INDEX)
    assert found(compare(other, tmp_path / "dcp")) == [(NAME, [*INDEX])]
    assert found(compare(tmp_path / "dcp", other)) == [(f"model.{NAME}", [*INDEX])]
    own = compare(tmp_path / "dcp", tmp_path / "dcp", optimizer=True)
    assert (own["verdict"], own["read"]["equal"]) == ("same", 4 * TENSORS)


def test_a_missing_file_of_dcp(model: Path, tmp_path: Path) -> None:
    run_ranks("write_fsdp.py", 2, model, tmp_path / "dcp")
    (tmp_path / "dcp" / "__1_0.distcp").unlink()
    result = compare(model, tmp_path / "dcp")
    assert result["verdict"] == "unknown"
    assert "__1_0.distcp is missing" in result["warnings"][0]["text"]


@pytest.mark.parametrize(
    ("stage", "ranks", "dtype"),
    [
        (0, 1, "fp32"),
        (1, 2, "fp32"),
        (2, 3, "fp32"),
        (3, 3, "fp32"),
        (1, 2, "bf16"),
        (3, 2, "bf16"),
    ],
)
def test_deepspeed(model: Path, tmp_path: Path, stage: int, ranks: int, dtype: str) -> None:
    run_ranks("write_deepspeed.py", ranks, model, tmp_path / "zero", stage, dtype, free_port())
    result = compare(model, tmp_path / "zero")
    assert result["verdict"] == "same"
    status = "equal" if dtype == "fp32" else "rounded"
    # norms of a new model are ones, which bfloat16 holds
    assert result["read"].get(status, 0) >= TENSORS - 5
    assert sum(result["read"].get(s, 0) for s in ("equal", "rounded")) == TENSORS
    other = changed(model, tmp_path / "other", NAME, INDEX)
    ((name, index),) = found(compare(other, tmp_path / "zero"))
    assert name == NAME
    # stage 3 has masters only: float32, so that nothing says that they were rounded
    assert index == ([0, 0] if (stage, dtype) == (3, "bf16") else [*INDEX])
    own = compare(tmp_path / "zero", tmp_path / "zero", optimizer=True)
    assert own["verdict"] == "same"
    assert own["read"]["equal"] >= 3 * TENSORS


def test_split_by_huggingface_hub(model: Path, tmp_path: Path) -> None:
    weights = LlamaForCausalLM.from_pretrained(model).state_dict()
    save_torch_state_dict(weights, tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 3
    result = compare(model, tmp_path)
    assert (result["verdict"], result["read"]["equal"]) == ("same", TENSORS)


def test_experts_fused_in_memory(tmp_path: Path) -> None:
    torch.manual_seed(4)
    config = MixtralConfig(**SIZES, num_local_experts=4, tie_word_embeddings=False)
    mixtral = MixtralForCausalLM(config)
    mixtral.save_pretrained(tmp_path / "hf")
    state = mixtral.state_dict()
    torch.save(state, tmp_path / "memory.pt")
    assert compare(tmp_path / "hf", tmp_path / "memory.pt")["verdict"] == "same"
    assert compare(tmp_path / "memory.pt", tmp_path / "hf")["verdict"] == "same"
    fused = next(name for name in state if name.endswith("gate_up_proj"))
    state[fused][2, 48 + 5, 7] += 1
    torch.save(state, tmp_path / "other.pt")
    ((name, index),) = found(compare(tmp_path / "hf", tmp_path / "other.pt"))
    assert name.endswith("experts.2.w3.weight")
    assert index == [5, 7]
    assert found(compare(tmp_path / "memory.pt", tmp_path / "other.pt")) == [(fused, [2, 53, 7])]


@pytest.mark.parametrize("new", [True, False])
def test_torch_save_of_both_kinds(model: Path, tmp_path: Path, new: bool) -> None:
    weights = LlamaForCausalLM.from_pretrained(model).state_dict()
    torch.save(weights, tmp_path / "m.bin", _use_new_zipfile_serialization=new)
    result = compare(model, tmp_path / "m.bin")
    assert (result["verdict"], result["read"]["equal"]) == ("same", TENSORS)


def test_dtypes(tmp_path: Path) -> None:
    kinds = [
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn),
        *(torch.float8_e5m2, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64),
        *(torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.uint32),
    ]
    numbers = torch.arange(8) % 5
    state = {str(kind): numbers.to(kind) for kind in kinds}
    torch.save(state, tmp_path / "a.pt")
    save_file({k: v for k, v in state.items() if "complex128" not in k}, tmp_path / "b.safetensors")
    result = compare(tmp_path / "a.pt", tmp_path / "b.safetensors")
    assert found(result) == [("torch.complex128", None)]
    assert result["read"]["equal"] == len(kinds) - 1
