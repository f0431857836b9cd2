"""Reads Megatron's `torch_dist` checkpoints: torch.distributed.checkpoint with stacked layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import ReadError
from .contents import Contents
from .dcp import read_dcp
from .layouts import family
from .megatron_model import is_gated, model_config, unstacked
from .torch_file import read_torch_file

COMMON = "common.pt"


def is_megatron(path: Path) -> bool:
    """Tell whether a folder with `.metadata` was written by Megatron."""
    return (path / COMMON).is_file() or (path / "metadata.json").is_file()


def read_megatron_dist(path: Path, folder: Path, extra: str = "") -> Contents:
    """Return what the folder of one iteration holds."""
    contents = read_dcp(folder)
    contents.path, contents.format, contents.family = str(path), "megatron torch_dist", "megatron"
    args = _args(contents, folder / COMMON)
    contents.config = model_config(args)
    sizes = {"tp": "tensor", "pp": "pipeline", "ep": "expert"}
    for key, word in sizes.items():
        contents.facts[key] = args.get(f"{word}_model_parallel_size") or 1
    rules = family("megatron", extra)
    contents.tensors = {
        rules.renamed(key): part
        for name, tensor in contents.tensors.items()
        for key, part in unstacked(name, tensor).items()
    }
    contents.optimizer = {
        (rules.renamed(key), slot): part
        for (name, slot), tensor in contents.optimizer.items()
        for key, part in unstacked(name, tensor).items()
    }
    if contents.config["gated"] is None:
        contents.config["gated"] = is_gated([contents.tensors])
    return contents


def _args(contents: Contents, file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        saved = read_torch_file(str(file))
    except ReadError as error:
        contents.unreadable(error)
        return {}
    contents.unsafe(str(file), saved.unsafe)
    value = saved.value if isinstance(saved.value, dict) else {}
    contents.facts["iteration"] = value.get("iteration")
    fields: dict[str, Any] = getattr(value.get("args"), "fields", {})
    return fields
