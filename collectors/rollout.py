"""Saves data of RL training, whatever the process: prompts, responses, log-probs, rewards, ...

    SingleSave("./dump", fmk="pytorch")
    SingleSave.save({"uid": uids, "response_ids": responses, "rollout_log_prob": log_probs})
    SingleSave.step()

The names are those of msprobe's SingleSave. Values are written as they are, in their own dtype.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import CrossrankError
from .layout import CONFIG_FILE, UNFINISHED
from .parts import RunInfo
from .rollout_adapters import as_dict
from .rollout_folders import write_folder
from .rollout_values import ValueKindError, rows_of
from .rollout_writer import RolloutWriter


class SingleSave:
    """Saves values of this process, by step, rank and micro step.

    The first one made counts; its methods belong to the class. Nothing here waits for a disk or for
    other ranks, and no error of ours reaches the training: what cannot be saved is told of once.

    Args:
        dump_path: one folder for all ranks of a node; nodes may have folders of their own.
        fmk: pytorch or mindspore.
        npy: write msprobe's folders (one float32 .npy and .json a value) instead of shards.
    """

    _writer: RolloutWriter | None = None
    _dump: Path | None = None
    _step = 0
    _counts: Counter[str] = Counter()

    def __init__(self, dump_path: str | Path, fmk: str = "pytorch", *, npy: bool = False) -> None:
        if fmk not in ("pytorch", "mindspore"):
            raise CrossrankError(f"fmk is {fmk!r}; expected pytorch or mindspore")
        kind = type(self)
        if kind._writer is not None:
            if Path(dump_path) != kind._dump:
                text = f"SingleSave writes to {kind._dump} already; {dump_path} is ignored"
                warnings.warn(text, stacklevel=2)
            return
        kind._dump = Path(dump_path)
        run = RunInfo(
            run_id=os.environ.get("TORCHELASTIC_RUN_ID", ""),
            framework=fmk,
            world_size=_world_size(),
        )
        kind._writer = RolloutWriter(kind._dump, run, folders=write_folder if npy else None)

    @classmethod
    def save(cls, data: Any) -> None:
        """Save values; how often a key was saved since the last step is its micro step.

        Args:
            data: key -> tensor, array, number, text, or lists and dicts of them; or a DataProto of
                verl, an Experience of OpenRLHF, inputs of a loss of TRL.
        """
        named = cls._named(data)
        for key, value in named.items():
            cls._save(key, value, cls._counts[key])
            cls._counts[key] += 1

    @classmethod
    def save_ex(cls, data: Any, micro_batch: int | None = None) -> None:
        """Save values of a micro step that the caller names; None is the first."""
        for key, value in cls._named(data).items():
            cls._save(key, value, micro_batch or 0)

    @classmethod
    def step(cls) -> None:
        """End the step: what follows belongs to the next one."""
        if cls._writer:
            cls._writer.end_step(cls._step, _rank())
        cls._step += 1
        cls._counts.clear()

    @classmethod
    def save_config(cls, data: Mapping[str, Any]) -> None:
        """Write the configuration beside the values, as configurations.json."""
        if cls._dump is None or not isinstance(data, Mapping):
            warnings.warn("SingleSave(dump_path) first, then save_config of a dict", stacklevel=2)
            return
        try:
            cls._dump.mkdir(parents=True, exist_ok=True)
            temporary = cls._dump / f"{CONFIG_FILE}.{os.getpid()}{UNFINISHED}"
            temporary.write_text(json.dumps(dict(data), indent=4, default=str))
            temporary.replace(cls._dump / CONFIG_FILE)
        except OSError as error:
            warnings.warn(f"the configuration could not be saved: {error}", stacklevel=2)

    @classmethod
    def flush(cls) -> None:
        """Wait until everything saved so far is on disk."""
        if cls._writer:
            cls._writer.flush()

    @classmethod
    def close(cls) -> None:
        """Write everything; another SingleSave may be made then, from step 0 on."""
        if cls._writer:
            cls._writer.close()
        cls._writer, cls._dump, cls._step = None, None, 0
        cls._counts = Counter()

    @classmethod
    def _named(cls, data: Any) -> dict[str, Any]:
        if cls._writer is None:
            warnings.warn("nothing is saved: SingleSave(dump_path) comes first", stacklevel=3)
            return {}
        try:
            return as_dict(data)
        except ValueKindError as error:
            warnings.warn(f"nothing is saved: {error}", stacklevel=3)
            return {}

    @classmethod
    def _save(cls, key: str, value: Any, micro: int) -> None:
        try:
            rows = list(rows_of(key, value))
            assert cls._writer is not None
            cls._writer.add(cls._step, _rank(), key, micro, rows, _size(value))
        except ValueKindError as error:
            warnings.warn(f"not saved: {error}", stacklevel=4)
        except Exception as error:  # a value of a kind that nobody thought of: not training's fault
            text = f"{key} was not saved: {type(error).__name__}: {error}; please report this"
            warnings.warn(text, RuntimeWarning, stacklevel=4)


def _size(value: Any) -> int:
    """Return the bytes of a value, roughly."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return len(value) if isinstance(value, str) else 8


def _rank() -> int:
    torch = sys.modules.get("torch")
    if torch is not None:
        distributed = torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    return int(os.environ.get("RANK") or os.environ.get("RANK_ID") or 0)


def _world_size() -> int | None:
    size = os.environ.get("WORLD_SIZE") or os.environ.get("RANK_SIZE")
    return int(size) if size and size.isdecimal() else None
