"""Collects from inside a training job: statistics of every call, and data of RL training."""

from __future__ import annotations

from typing import Any

__all__ = ["PrecisionDebugger", "SingleComparator", "SingleSave"]


def __getattr__(name: str) -> Any:
    """Import the collector when it is asked for: whoever reads shards needs no PyTorch."""
    if name == "PrecisionDebugger":
        from .debugger import PrecisionDebugger

        return PrecisionDebugger
    if name == "SingleSave":
        from .rollout import SingleSave

        return SingleSave
    if name == "SingleComparator":
        from .comparator import SingleComparator

        return SingleComparator
    raise AttributeError(f"module {__name__} has no attribute {name}")
