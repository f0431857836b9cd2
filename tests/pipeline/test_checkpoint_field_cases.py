"""Checkpoints from public bug reports, rebuilt small, with their right answers."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from pipeline.checkpoint_compare import EXPLAINED
from pipeline.cli import main
from tests.checkpoints import (
    HIDDEN,
    LAYERS,
    WORDS,
    compare,
    found,
    llama,
    stages,
    write_megatron,
    write_safetensors,
)


def save(path: Path, **tensors: torch.Tensor) -> Path:
    torch.save({name.replace("__", "."): t for name, t in tensors.items()}, path)
    return path


def only(result: dict[str, Any], status: str) -> dict[str, Any]:
    (finding,) = [f for f in result["findings"] if f["status"] == status]
    return finding


def test_padded_vocabulary(tmp_path: Path) -> None:
    """T51: rows beyond the vocabulary are listed and not compared."""
    hidden, words, padded = 4, 50257, 50304
    table = torch.randn(words, hidden)
    a = write_safetensors(
        tmp_path / "a", {"model.embed_tokens.weight": table.numpy(), "x": np.ones(1, np.float32)}, 1
    )
    both = torch.cat([table, torch.randn(padded - words, hidden)])
    args = argparse.Namespace(tensor_model_parallel_size=2, pipeline_model_parallel_size=1)
    for rank, part in enumerate(both.chunk(2)):
        folder = tmp_path / "b" / f"mp_rank_{rank:02d}"
        folder.mkdir(parents=True)
        model = {"embedding.word_embeddings.weight": part.clone(), "x": torch.ones(1)}
        torch.save({"args": args, "model": model}, folder / "model_optim_rng.pt")
    result = compare(a, tmp_path / "b")
    assert result["verdict"] == "same"
    finding = only(result, "padding")
    assert "47 rows of padding were not compared" in finding["hint"]
    assert finding["unequal"] == 0


def test_vocabulary_whose_size_no_file_tells(tmp_path: Path) -> None:
    """Rows up to the end of a padded table count as padding, and that is said."""
    model = llama()
    a = write_megatron(tmp_path / "a", model, 1, divisible=128, vocab_size=None)
    b = write_megatron(tmp_path / "b", model, 2, divisible=64, vocab_size=None)
    result = compare(a, b)
    assert result["verdict"] == "same"
    assert {w["code"] for w in result["warnings"]} == {"padding_assumed"}
    hints = [f["hint"] for f in result["findings"] if f["status"] == "padding"]
    assert all(f"--vocabulary {WORDS}" in hint for hint in hints)
    assert len(hints) == 2
    told = compare(a, b, vocabulary=WORDS)
    assert told["verdict"] == "same"
    assert told["warnings"] == []
    more = compare(a, b, vocabulary=WORDS + 1)
    assert {name for name, _ in found(more)} == {
        "embedding.word_embeddings.weight",
        "output_layer.weight",
    }


def test_a_change_above_the_padding_is_no_padding(tmp_path: Path) -> None:
    model = llama()
    a = write_megatron(tmp_path / "a", model, 1, divisible=128, vocab_size=None)
    model["lm_head.weight"][WORDS - 2, 3] += 1
    b = write_megatron(tmp_path / "b", model, 2, divisible=64, vocab_size=None)
    assert found(compare(a, b)) == [("output_layer.weight", [WORDS - 2, 3])]


def test_extra_state(tmp_path: Path) -> None:
    """T53: opaque, told apart by its bytes, and no weight."""
    kinds = {
        "a": (None, None),
        "b": (torch.empty(0, dtype=torch.uint8), torch.empty(0, dtype=torch.uint8)),
        "c": (io.BytesIO(b"one"), io.BytesIO(b"two")),
        "d": (b"same", b"same"),
    }
    for side in (0, 1):
        state: dict[str, Any] = {"fc1.weight": torch.ones(2, 2)}
        state |= {f"{name}.linear_fc1._extra_state": both[side] for name, both in kinds.items()}
        torch.save(state, tmp_path / f"{side}.pt")
    result = compare(tmp_path / "0.pt", tmp_path / "1.pt")
    assert result["verdict"] == "same"
    assert found(result, "opaque") == [("c.linear_fc1._extra_state", None)]
    assert result["read"]["equal"] == 1


def test_no_training_code(tmp_path: Path) -> None:
    """T55: a class that is nowhere installed is read as its name."""
    import sys
    import types

    module = types.ModuleType("megatron_not_here")
    module.ModelType = type("ModelType", (), {"__module__": "megatron_not_here"})  # type: ignore[attr-defined]
    sys.modules["megatron_not_here"] = module

    def edit(name: str, value: Any) -> tuple[str, Any]:
        return name, value

    try:
        b = write_megatron(tmp_path / "b", llama(), 2, edit=edit)
        for file in b.rglob("*.pt"):
            state = torch.load(file, weights_only=False)
            state["args"].model_type = module.ModelType()
            torch.save(state, file)
    finally:
        del sys.modules["megatron_not_here"]
    result = compare(write_safetensors(tmp_path / "a", llama()), b)
    assert result["verdict"] == "same"
    assert result["warnings"] == []
    assert result["read"]["b"]["tp"] == 2


UNEVEN = [[[0]], [[1, 2, 3]]]
ONE_EACH = [[[0], [2]], [[1], [3]]]


@pytest.mark.parametrize("layers", [stages(2, 2), stages(4), UNEVEN, ONE_EACH])
def test_virtual_and_uneven_pipelines(tmp_path: Path, layers: list[list[list[int]]]) -> None:
    """T56: every chunk numbers its layers from 0."""
    model = llama()
    a = write_megatron(tmp_path / "a", model)
    b = write_megatron(tmp_path / "b", model, 1, layers)
    result = compare(a, b)
    assert result["verdict"] == "same"
    assert result["read"]["equal"] == 6 * LAYERS + 3


def test_eight_layers_in_two_chunks_of_two(tmp_path: Path) -> None:
    """T56 as reported: stage 0 holds [0,1],[4,5] and stage 1 holds [2,3],[6,7]."""
    args = argparse.Namespace(
        tensor_model_parallel_size=1, pipeline_model_parallel_size=2,
        virtual_pipeline_model_parallel_size=2,
    )  # fmt: skip
    norms = [torch.full((4,), float(n)) for n in range(8)]

    def entries(numbers: list[int]) -> dict[str, torch.Tensor]:
        return {
            f"decoder.layers.{local}.input_layernorm.weight": norms[n]
            for local, n in enumerate(numbers)
        }

    for stage, chunks in enumerate(([[0, 1], [4, 5]], [[2, 3], [6, 7]])):
        folder = tmp_path / "b" / f"mp_rank_00_{stage:03d}"
        folder.mkdir(parents=True)
        state = {f"model{c}": entries(numbers) for c, numbers in enumerate(chunks)}
        torch.save({"args": args, **state}, folder / "model_optim_rng.pt")
    whole = tmp_path / "a" / "mp_rank_00"
    whole.mkdir(parents=True)
    torch.save(
        {"args": argparse.Namespace(), "model": entries(list(range(8)))},
        whole / "model_optim_rng.pt",
    )
    result = compare(tmp_path / "a", tmp_path / "b")
    assert result["verdict"] == "same"
    assert result["read"]["equal"] == 8


def test_gate_and_up_under_tensor_parallelism(tmp_path: Path) -> None:
    """T57: rows 0-3 are gate, 4-7 up; rank 0 holds 0,1,4,5."""
    fc1, fc2 = torch.arange(32.0).reshape(8, 4), torch.arange(16.0).reshape(4, 4)
    name = "decoder.layers.0.mlp.linear_fc{}.weight"
    for folder, parts in (("a", [range(8)]), ("b", [(0, 1, 4, 5), (2, 3, 6, 7)])):
        args = argparse.Namespace(tensor_model_parallel_size=len(parts), swiglu=True)
        for rank, rows in enumerate(parts):
            path = tmp_path / folder / f"mp_rank_{rank:02d}"
            path.mkdir(parents=True)
            columns = fc2.chunk(len(parts), 1)[rank].clone()
            model = {name.format(1): fc1[list(rows)], name.format(2): columns}
            torch.save({"args": args, "model": model}, path / "model_optim_rng.pt")
    assert compare(tmp_path / "a", tmp_path / "b")["verdict"] == "same"


def test_square_transpose(tmp_path: Path) -> None:
    """T58: different, with what it is equal to."""
    weight = torch.randn(4096, 256)[:, :].repeat(1, 16)
    a, b = save(tmp_path / "a.pt", w=weight), save(tmp_path / "b.pt", w=weight.t().contiguous())
    finding = only(compare(a, b), "different")
    assert finding["hint"] == "equal to the transpose"


@pytest.mark.parametrize("seed", range(12))
def test_cast(tmp_path: Path, seed: int) -> None:
    """T59: a rounded copy is the same; two steps of bfloat16 are not."""
    torch.manual_seed(seed)
    weight = torch.randn(64, 32)
    low = weight.to(torch.bfloat16)
    a, b = save(tmp_path / "a.pt", w=weight), save(tmp_path / "b.pt", w=low)
    result = compare(a, b)
    assert result["verdict"] == "same"
    assert only(result, "rounded")["hint"] == "float32 against bfloat16, equal after rounding"
    low.view(torch.int16)[3, 4] += 2
    result = compare(a, save(tmp_path / "c.pt", w=low))
    finding = only(result, "different")
    assert finding["first_index"] == finding["last_index"] == [3, 4]
    assert finding["hint"] == "float32 against bfloat16; 1 elements differ beyond rounding"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounded_and_stored_wide(tmp_path: Path, dtype: torch.dtype) -> None:
    """A master that was built from rounded weights has their values in float32."""
    weight = torch.randn(64, 32)
    a = save(tmp_path / "a.pt", w=weight)
    b = save(tmp_path / "b.pt", w=weight.to(dtype).float())
    assert compare(a, b)["verdict"] == compare(b, a)["verdict"] == "same"
    one = weight.clone()
    one[5, 5] = one[5, 5].to(dtype).float()
    assert found(compare(a, save(tmp_path / "c.pt", w=one))) == [("w", [5, 5])]


def adam(names: list[str], state: dict[str, torch.Tensor], step: Any) -> dict[str, Any]:
    slots = [{"step": step, "exp_avg": state[n], "exp_avg_sq": state[n] ** 2} for n in names]
    groups = [{"lr": 0.1, "params": list(range(len(names))), "param_names": names}]
    return {"state": dict(enumerate(slots)), "param_groups": groups}


def test_order_of_the_optimizer(tmp_path: Path) -> None:
    """T61: parameters in another order, and a step that is a number or a tensor."""
    names = ["a.weight", "b.weight", "c.weight"]
    state = {name: torch.randn(3, 3) for name in names}
    model = {name: torch.ones(3, 3) for name in names}
    first = {"model": model, "optimizer": adam(names, state, 7)}
    second = {"model": model, "optimizer": adam(names[::-1], state, torch.tensor(7.0))}
    for name, content in (("a", first), ("b", second)):
        torch.save(content, tmp_path / f"{name}.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt", optimizer=True)
    assert result["verdict"] == "same"
    assert result["read"]["equal"] == 3 + 9
    assert compare(tmp_path / "a.pt", tmp_path / "b.pt")["read"]["equal"] == 3
    second["optimizer"]["state"][0]["exp_avg"][1, 2] += 1  # type: ignore[index]
    torch.save(second, tmp_path / "c.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "c.pt", optimizer=True)
    assert found(result) == [("optimizer.c.weight.exp_avg", [1, 2])]


def test_missing_shard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """T63: the file and its tensors are named, and no headline says that all is well."""
    model = llama()
    a, b = write_safetensors(tmp_path / "a", model), write_safetensors(tmp_path / "b", model)
    (b / "model-00002-of-00003.safetensors").unlink()
    code = main(["checkpoint", str(a), str(b), "--out", str(tmp_path / "out"), "--quiet"])
    shown = capsys.readouterr()
    assert code == 2
    assert shown.out.startswith("Cannot tell")
    assert "model-00002-of-00003.safetensors is missing" in shown.err
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["verdict"] == "unknown"
    (warning,) = result["warnings"]
    assert list(model)[1] in warning["text"]
    assert result["read"]["equal"] == 26


def test_missing_shard_and_a_difference(tmp_path: Path) -> None:
    model = llama()
    a = write_safetensors(tmp_path / "a", model)
    model["model.embed_tokens.weight"][0, 0] += 1
    b = write_safetensors(tmp_path / "b", model)
    (b / "model-00002-of-00003.safetensors").unlink()
    result = compare(a, b)
    assert result["verdict"] == "different"
    assert found(result, "different") == [("model.embed_tokens.weight", [0, 0])]


def test_truncated_rank(tmp_path: Path) -> None:
    """T65: the file is named, the other ranks are compared."""
    model = llama()
    a = write_megatron(tmp_path / "a", model, 1, stages(2))
    b = write_megatron(tmp_path / "b", model, 1, stages(2))
    file = b / "iter_0000007/mp_rank_00_001/model_optim_rng.pt"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    result = compare(a, b)
    assert result["verdict"] == "unknown"
    assert str(file) in result["warnings"][0]["text"]
    assert result["read"]["equal"] == 1 + 2 * 6


def test_odd_tensors(tmp_path: Path) -> None:
    """T67: empty, scalar, a view, NaN at the same place."""
    nan = torch.tensor([1.0, float("nan"), float("-inf")])
    base = torch.randn(6, 4)
    odd = {"empty": torch.empty(0, 3), "scalar": torch.tensor(3.0), "view": base.t(), "nan": nan}
    odd |= {"half": base[::2, 1], "stretched": torch.ones(1, 3).expand(4, 3)}
    torch.save(odd, tmp_path / "a.pt")
    torch.save({k: v.contiguous().clone() for k, v in odd.items()}, tmp_path / "b.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt", every=True)
    assert result["verdict"] == "same"
    assert {f["name"]: f["status"] for f in result["findings"]} == dict.fromkeys(odd, "equal")
    hints = {f["name"]: f["hint"] for f in result["findings"]}
    assert hints["nan"] == "NaN: 1 in A, 1 in B"
    assert hints["view"] == ""


HINTS = {
    "scaled by 1.5": lambda w: w * 1.5,
    "the sign is flipped": lambda w: -w,
    "the same rows in another order": lambda w: w[torch.randperm(len(w))],
    "the upper and the lower half are exchanged": lambda w: torch.cat([w[4:], w[:4]]),
    "equal to the transpose": lambda w: w.t().contiguous(),
    "": lambda w: w + torch.randn_like(w),
}


@pytest.mark.parametrize("hint", HINTS)
def test_hints(tmp_path: Path, hint: str) -> None:
    torch.manual_seed(1)
    weight = torch.randn(8, 8)
    a, b = save(tmp_path / "a.pt", w=weight), save(tmp_path / "b.pt", w=HINTS[hint](weight))
    assert only(compare(a, b), "different")["hint"] == hint


def test_layers_shifted_by_one(tmp_path: Path) -> None:
    layers = [torch.randn(4, 4) for _ in range(5)]
    for name, first in (("a", 0), ("b", 1)):
        state = {f"layers.{n}.mlp.weight": layers[first + n] for n in range(4)}
        torch.save(state, tmp_path / f"{name}.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt")
    hints = {f["name"]: f["hint"] for f in result["findings"]}
    assert hints["layers.2.mlp.weight"].startswith("equal to the tensor of the layer before")
    assert hints["layers.0.mlp.weight"] == ""


def test_replicas_that_disagree(tmp_path: Path) -> None:
    """Every tensor-parallel rank has its copy of a norm."""
    b = write_megatron(tmp_path / "b", llama(), 2)
    file = b / "iter_0000007/mp_rank_01/model_optim_rng.pt"
    state = torch.load(file, weights_only=False)
    state["model"]["decoder.layers.1.input_layernorm.weight"][3] += 1
    torch.save(state, file)
    result = compare(write_safetensors(tmp_path / "a", llama()), b)
    assert result["verdict"] == "same"
    (warning,) = result["warnings"]
    assert warning["code"] == "replica_mismatch"
    assert "decoder.layers.1.input_layernorm.weight" in warning["text"]
    assert "tp rank 1" in warning["text"]
    assert "the first at [3]" in warning["text"]


def test_masters_that_do_not_round_to_the_weights(tmp_path: Path) -> None:
    master = torch.randn(8, 8)
    state = {
        "model": {"w": master.to(torch.bfloat16)},
        "param_names": ["w"],
        "optimizer": {"fp32_from_fp16_params": [[master.clone()]]},
    }
    torch.save(state, tmp_path / "a.pt")
    state["optimizer"]["fp32_from_fp16_params"][0][0][2, 1] += 1  # type: ignore[index]
    torch.save(state, tmp_path / "b.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt", optimizer=True)
    assert found(result) == [("optimizer.w.fp32_param", [2, 1])]
    (warning,) = result["warnings"]
    assert warning["code"] == "master_mismatch"
    assert "its master in B" in warning["text"]


def test_an_optimizer_on_one_side(tmp_path: Path) -> None:
    model = {"w": torch.ones(2)}
    torch.save({"model": model, "optimizer": adam(["w"], model, 1)}, tmp_path / "a.pt")
    torch.save({"model": model}, tmp_path / "b.pt")
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt", optimizer=True)
    assert result["verdict"] == "same"
    assert {w["code"] for w in result["warnings"]} == {"not_covered"}


def test_tied_output_layer(tmp_path: Path) -> None:
    table = torch.randn(10, 4)
    save_file({"model.embed_tokens.weight": table}, tmp_path / "a.safetensors")
    tied = {"model.embed_tokens.weight": table, "lm_head.weight": table}
    torch.save(tied, tmp_path / "b.bin")
    result = compare(tmp_path / "a.safetensors", tmp_path / "b.bin")
    assert result["verdict"] == "same"
    assert only(result, "tied")["name"] == "lm_head.weight"
    other = {"model.embed_tokens.weight": table, "lm_head.weight": table + 1}
    torch.save(other, tmp_path / "c.bin")
    result = compare(tmp_path / "a.safetensors", tmp_path / "c.bin")
    assert result["verdict"] == "different"


def test_nothing_in_common_is_unknown(tmp_path: Path) -> None:
    a, b = save(tmp_path / "a.pt", x=torch.ones(2)), save(tmp_path / "b.pt", y=torch.ones(3))
    assert compare(a, b)["verdict"] == "different"
    for name in ("c", "d"):
        torch.save({"note": name}, tmp_path / f"{name}.pt")
    with pytest.raises(Exception, match="holds no tensor"):
        compare(tmp_path / "c.pt", tmp_path / "d.pt")


def test_more_differences_than_are_explained(tmp_path: Path) -> None:
    count = EXPLAINED + 20
    a = save(tmp_path / "a.pt", **{f"w{n}": torch.ones(HIDDEN) for n in range(count)})
    b = save(tmp_path / "b.pt", **{f"w{n}": torch.zeros(HIDDEN) for n in range(count)})
    assert len(found(compare(a, b))) == count
