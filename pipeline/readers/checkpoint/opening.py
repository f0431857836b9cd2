"""Finds out of which family a checkpoint is, and reads it."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ReadError
from . import mindspore, plain, safetensors
from .contents import Contents, Problem
from .dcp import METADATA, read_dcp
from .deepspeed import MODEL, read_deepspeed
from .megatron import FILE, FOLDER, read_megatron
from .megatron_dist import is_megatron, read_megatron_dist

TRACKER = "latest_checkpointed_iteration.txt"
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
WHOLE = ("model.safetensors", "pytorch_model.bin")
SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".npy", ".pkl")
SHARD = re.compile(r".*-\d{5}-of-\d{5}$")
BESIDE = (
    "optimizer",
    "scheduler",
    "random_states",
    "rng_state",
    "training_args",
    "scaler",
    "sampler",
)
"""Files that a trainer puts beside the weights; of them only the optimizer is compared."""


SURPRISES = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
    struct.error,
)  # fmt: skip
"""What a file raises that is well formed and holds something else than its kind does."""


def open_checkpoint(path: Path, layout: str = "") -> Contents:
    """Return what a checkpoint holds; no tensor is read yet.

    Args:
        path: a file, or the folder that a framework wrote.
        layout: a YAML file with more layout rules.

    Raises:
        ReadError: there is no checkpoint, or nothing of it can be read.
    """
    if path.is_file():
        contents = Contents(str(path), "file")
        _add_file(contents, path)
        _expect_something(contents)
        return contents
    if not path.is_dir():
        raise ReadError(f"{path} does not exist; expected a checkpoint's file or folder")
    try:
        contents = _open_folder(path, layout)
    except SURPRISES as error:
        raise ReadError(
            f"{path} holds something else than its files promise ({_words(error)})"
        ) from None
    contents.config |= _config(path, contents.config)
    _expect_something(contents)
    return contents


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _expect_something(contents: Contents) -> None:
    if not (contents.tensors or contents.unmerged or contents.optimizer or contents.problems):
        raise ReadError(f"{contents.path} holds no tensor")


def _open_folder(path: Path, layout: str) -> Contents:
    folder = _iteration(path)
    if (folder / METADATA).is_file():
        return _open_distributed(path, folder, layout)
    if any(FOLDER.fullmatch(p.name) and (p / FILE).exists() for p in folder.iterdir()):
        return read_megatron(path, folder, layout)
    tag = _tag(path)
    if tag:
        return read_deepspeed(path, tag)
    if (path / "pytorch_model_fsdp_0" / METADATA).is_file():  # accelerate
        return _open_parts(path, layout, "pytorch_model_fsdp_0", "optimizer_0")
    for name in INDEXES:
        if (path / name).is_file():
            return _open_index(path, path / name)
    files = sorted(p for p in path.iterdir() if p.suffix in SUFFIXES and p.is_file())
    if not files:
        raise ReadError(
            f"{path} holds no checkpoint: expected one of {', '.join(SUFFIXES)}, {METADATA}, "
            f"{TRACKER}, mp_rank_*, or *_model_states.pt"
        )
    return _open_files(path, files)


def _iteration(path: Path) -> Path:
    """Return the folder of the last iteration of Megatron; the folder itself if it is none."""
    tracker = path / TRACKER
    if not tracker.is_file():
        return path
    text = tracker.read_text(errors="replace").strip()
    name = text if text == "release" else f"iter_{int(text):07d}" if text.isdecimal() else ""
    folder = path / name
    if not name or not folder.is_dir():
        raise ReadError(
            f"{tracker} says {text[:40]!r}, and there is no such folder; give the folder of an "
            "iteration"
        )
    return folder


def _open_distributed(path: Path, folder: Path, layout: str) -> Contents:
    if is_megatron(folder):
        return read_megatron_dist(path, folder, layout)
    return read_dcp(folder)


def _open_parts(path: Path, layout: str, model: str, optimizer: str) -> Contents:
    contents = read_dcp(path / model)
    contents.path = str(path)
    if (path / optimizer / METADATA).is_file():
        other = read_dcp(path / optimizer)
        contents.optimizer |= other.optimizer
        contents.problems += other.problems
    return contents


def _tag(path: Path) -> Path | None:
    """Return the folder of DeepSpeed's last tag, or the folder if it is one."""
    latest = path / "latest"
    if latest.is_file():
        folder = path / latest.read_text(errors="replace").strip()
        if not folder.is_dir():
            raise ReadError(f"{latest} names {folder.name}, which is not there")
        return folder
    return path if any(MODEL.fullmatch(p.name) for p in path.iterdir()) else None


def _open_index(path: Path, index: Path) -> Contents:
    """Return shards that an index names; what it names and is not there is told of."""
    try:
        named: dict[str, str] = json.loads(index.read_text())["weight_map"]
        shards = sorted(set(named.values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReadError(f"{index} cannot be read ({error})") from None
    kind = "safetensors" if index.name == INDEXES[0] else "torch"
    contents = Contents(str(path), kind, facts={"shards": len(shards)})
    for shard in shards:
        tensors = tuple(sorted(k for k, v in named.items() if v == shard))
        if Path(shard).name != shard or not (path / shard).is_file():
            text = (
                f"{path / shard} is missing; {index.name} says it holds "
                f"{', '.join(tensors[:8])}{' ...' * (len(tensors) > 8)}"
            )
            contents.problems.append(Problem("file_missing", text, tensors))
        else:
            _add_file(contents, path / shard)
    _check_index(contents, index, named)
    _add_beside(contents, path)
    return contents


def _check_index(contents: Contents, index: Path, named: dict[str, str]) -> None:
    """Note tensors that the index names and its file, which can be read, does not hold."""
    told = {t for p in contents.problems for t in p.tensors}
    if contents.damaged:
        return
    lost = tuple(sorted(set(named) - set(contents.tensors) - told))
    if lost:
        text = f"{index} names {', '.join(lost[:8])}, which its files do not hold"
        contents.problems.append(Problem("file_missing", text, lost))


def _open_files(path: Path, files: list[Path]) -> Contents:
    whole = [p for p in files if p.name in WHOLE][:1]
    weights = whole or [p for p in files if not p.stem.startswith(BESIDE)]
    if weights and weights[0].suffix == ".safetensors" and safetensors.is_sliced(weights[0]):
        return safetensors.read_sliced(path, [p for p in weights if p.suffix == ".safetensors"])
    contents = Contents(str(path), "file" if len(weights) == 1 else "files")
    contents.facts |= {"files": len(weights)} if len(weights) > 1 else {}
    together = len(weights) == 1 or all(SHARD.fullmatch(p.stem) for p in weights)
    for file in weights:
        _add_file(contents, file, "" if together else f"{file.stem}/")
    if together:
        _add_beside(contents, path)
    return contents


def _add_beside(contents: Contents, path: Path) -> None:
    for name in ("optimizer.bin", "optimizer.pt"):
        if (path / name).is_file():
            plain.add_file(contents, path / name)


def _add_file(contents: Contents, path: Path, prefix: str = "") -> None:
    """Add one file, by what it begins with rather than by its name."""
    add: Callable[[Contents, Path, str], None] = plain.add_file
    if path.suffix == ".safetensors":
        add, contents.format = safetensors.add_file, "safetensors"
    elif path.suffix == ".npy":
        add, contents.format = plain.add_npy, "npy"
    elif mindspore.is_mindspore(path):
        add, contents.format = mindspore.add_file, "mindspore"
    elif contents.format in ("file", "files"):
        contents.format = "torch"
    try:
        add(contents, path, prefix)
    except SURPRISES as error:
        text = f"{path} holds something else than its kind does ({_words(error)})"
        contents.unreadable(ReadError(text))


def _config(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return the model's facts of a config.json, without those that are known."""
    try:
        config = json.loads((path / "config.json").read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(config, dict):
        return {}
    config = config.get("text_config") or config
    heads, hidden = config.get("num_attention_heads"), config.get("hidden_size")
    found = {
        "heads": heads,
        "groups": config.get("num_key_value_heads") or heads,
        "head_dim": config.get("head_dim") or (hidden // heads if heads and hidden else None),
        "vocab_size": config.get("vocab_size"),
    }
    return {key: value for key, value in found.items() if given.get(key) is None}
