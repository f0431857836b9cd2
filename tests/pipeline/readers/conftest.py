"""A path that no pickle may touch."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a path that nothing may touch; what would run something is noted as well."""
    ran: list[str] = []
    for module, name in ((os, "system"), (builtins, "eval"), (builtins, "__import__")):
        real = getattr(module, name)

        def note(*args: Any, real: Any = real, name: str = name, **more: Any) -> Any:
            ran.append(f"{name}{args[:1]}")
            return real(*args, **more)

        monkeypatch.setattr(module, name, note)
    target = tmp_path / "PWNED"
    yield target
    monkeypatch.undo()
    assert not target.exists()
    assert not [call for call in ran if "system" in call or "antigravity" in call]
