"""Collects per-rank statistics of every call from inside a training job."""

from __future__ import annotations

from typing import Any

__all__ = ["PrecisionDebugger"]


def __getattr__(name: str) -> Any:
    """Import the collector when it is asked for: whoever reads shards needs no PyTorch."""
    if name == "PrecisionDebugger":
        from .debugger import PrecisionDebugger

        return PrecisionDebugger
    raise AttributeError(f"module {__name__} has no attribute {name}")
