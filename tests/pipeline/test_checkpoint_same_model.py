"""One model in every layout: all pairs are the same, and one changed weight is found in each."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.checkpoints import (
    FFN,
    PER_GROUP,
    SIZE,
    Weights,
    compare,
    found,
    llama,
    stages,
    write_dcp,
    write_megatron,
    write_safetensors,
)

LAYOUTS = ("hf", "tp1", "tp2pp2", "tp2vpp2", "tp4", "dcp2", "dcp4")
MEGATRON = ("tp1", "tp2pp2", "tp2vpp2", "tp4")

CHANGES = {
    "model.layers.2.self_attn.q_proj.weight": (20, 5),
    "model.layers.1.self_attn.v_proj.weight": (9, 31),
    "model.layers.3.mlp.up_proj.weight": (63, 0),
    "model.layers.0.mlp.down_proj.weight": (31, 63),
    "lm_head.weight": (100, 31),
}
"""Weight -> the element that is changed in it."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Return (layout, changed weight or nothing) -> folder."""
    root = tmp_path_factory.mktemp("layouts")
    models: dict[str, Weights] = {"": llama()}
    for name, index in CHANGES.items():
        models[name] = llama()
        models[name][name][index] += 0.5
    numbered = {f"m{n}": weights for n, weights in enumerate(models.values())}
    made = {}
    for layout, ranks in (("dcp2", 2), ("dcp4", 4)):
        write_dcp(root / layout, ranks, numbered)
    for number, (name, weights) in zip(numbered, models.items(), strict=True):
        made["hf", name] = write_safetensors(root / "hf" / number, weights)
        made["tp1", name] = write_megatron(root / "tp1" / number, weights)
        made["tp2pp2", name] = write_megatron(
            root / "tp2pp2" / number, weights, 2, stages(2), divisible=64
        )
        made["tp2vpp2", name] = write_megatron(
            root / "vpp" / number, weights, 2, stages(2, 2), divisible=4
        )
        made["tp4", name] = write_megatron(root / "tp4" / number, weights, 4, divisible=128)
        made["dcp2", name] = root / "dcp2" / number
        made["dcp4", name] = root / "dcp4" / number
    return made


def expected(layout: str, name: str) -> tuple[str, list[int]]:
    """Return name and index of a changed weight, as that layout has them."""
    row, column = CHANGES[name]
    if layout == "hf":
        return name, [row, column]
    if layout.startswith("dcp"):
        return f"model.{name}", [row, column]
    if name == "lm_head.weight":
        return "output_layer.weight", [row, column]
    layer = name.split(".")[2]
    if "q_proj" in name:
        row = row // PER_GROUP * (PER_GROUP + 2 * SIZE) + row % PER_GROUP
        return f"decoder.layers.{layer}.self_attention.linear_qkv.weight", [row, column]
    if "v_proj" in name:
        row = row // SIZE * (PER_GROUP + 2 * SIZE) + PER_GROUP + SIZE + row % SIZE
        return f"decoder.layers.{layer}.self_attention.linear_qkv.weight", [row, column]
    if "up_proj" in name:
        return f"decoder.layers.{layer}.mlp.linear_fc1.weight", [FFN + row, column]
    return f"decoder.layers.{layer}.mlp.linear_fc2.weight", [row, column]


@pytest.mark.parametrize(("a", "b"), list(product(LAYOUTS, LAYOUTS)))
def test_the_same_model(folders: dict[tuple[str, str], Path], a: str, b: str) -> None:
    result = compare(folders[a, ""], folders[b, ""])
    assert found(result) == []
    assert result["verdict"] == "same"
    whole = {"hf", "dcp2", "dcp4"}
    assert result["read"]["tensors"] == (39 if a in whole else 27)


@pytest.mark.parametrize(("a", "b"), list(product(LAYOUTS, LAYOUTS)))
@pytest.mark.parametrize("name", CHANGES)
def test_one_changed_weight(
    folders: dict[tuple[str, str], Path], a: str, b: str, name: str
) -> None:
    result = compare(folders[a, ""], folders[b, name])
    assert result["verdict"] == "different"
    assert found(result) == [expected(a, name)]
    (finding,) = [f for f in result["findings"] if f["status"] == "different"]
    assert finding["unequal"] == 1
    assert abs(finding["max_abs"] - 0.5) < 1e-6


def test_formats_are_named(folders: dict[tuple[str, str], Path]) -> None:
    read = compare(folders["tp2vpp2", ""], folders["dcp4", ""])["read"]
    assert (read["a"]["format"], read["a"]["tp"], read["a"]["pp"], read["a"]["vpp"]) == (
        "megatron",
        2,
        2,
        2,
    )
    assert (read["b"]["format"], read["b"]["files"]) == ("torch distributed", 4)
