"""Turns a dump of msprobe into shards, as `crossrank ingest` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def as_shards(source: Path, shards: Path) -> Path:
    """Write the shards of a dump; return where."""
    shards.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pipeline.ingest", str(source), str(shards), "--quiet"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return shards
