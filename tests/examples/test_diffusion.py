"""The example's story, step by step: each random operation on the device in its turn, then none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..conftest import compare_here

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "diffusion.py"


def compared(folder: Path, *draws: str) -> dict[str, Any]:
    dumps = []
    for seed in ("1", "2"):
        dump = folder / seed
        command = [sys.executable, str(EXAMPLE), "--dump", str(dump), "--device-seed", seed]
        subprocess.run([*command, *(["--on-cpu", *draws] if draws else [])], check=True)
        dumps.append(dump)
    return compare_here(*dumps)


def line_of(code: str) -> int:
    lines = EXAMPLE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if code in line)


@pytest.mark.parametrize(
    ("draws", "call", "code"),
    [
        ([], "Torch.randint.0.forward", "timestep = torch.randint(0, STEPS, (BATCH,), device"),
        (["timesteps"], "Torch.rand_like.0.forward", "noise = torch.rand_like(images)"),
    ],
)
def test_the_random_operation_and_its_line(
    tmp_path: Path, draws: list[str], call: str, code: str
) -> None:
    first = compared(tmp_path, *draws)["first_divergence"]
    assert (first["call"], first["status"]) == (call, "random")
    assert first["source"] == {"call": call, "why": "random op: device generator"}
    assert f"diffusion.py:{line_of(code)} in training_loss" in first["line"]
    assert first["hint"].startswith("draw on the CPU, then move")


def test_the_same_once_all_is_drawn_on_the_cpu(tmp_path: Path) -> None:
    result = compared(tmp_path, "timesteps", "noise")
    assert (result["verdict"], result["findings"]) == ("same", [])
