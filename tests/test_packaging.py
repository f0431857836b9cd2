"""The wheel: nothing at the top but `crossrank`, and a command that works beside other packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DUMP = ROOT / "examples" / "tp2_dp2_log_of_zero"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(pip, check=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="session")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a new environment that holds the wheel, and what it needs from this one."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False, symlinks=True)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


@pytest.fixture
def training_folder(tmp_path: Path) -> Path:
    """A repository whose own packages have the names of ours."""
    for name in ("pipeline", "collectors", "analyzers", "sql"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('not your {name}')\n")
    return tmp_path


def clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def test_nothing_else_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert {name.split("/")[0] for name in names} <= {
        "crossrank",
        f"{wheel.name.rsplit('-', 3)[0]}.dist-info",
    }
    for part in (
        "sql/nan/origins.sql",
        "pipeline/reports/templates/page.html",
        "collectors/schema.py",
    ):
        assert f"crossrank/{part}" in names


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_the_command_in_a_folder_with_packages_of_the_same_names(
    bin_folder: Path, training_folder: Path, engine: str
) -> None:
    command = [str(bin_folder / "crossrank"), "analyze", str(DUMP), "--engine", engine]
    done = subprocess.run(
        [*command, "--out", "answer"],
        cwd=training_folder,
        env=clean_environment() | {"PYTHONPATH": str(training_folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"pipeline.analyze from {bin_folder.parent}" in done.stderr
    result = json.loads((training_folder / "answer" / "result.json").read_text())
    assert (result["origins"][0]["rank"], result["origins"][0]["call"]) == (
        3,
        "Torch.log.0.forward",
    )


def test_training_code_imports_the_collectors_beside_its_own(
    bin_folder: Path, training_folder: Path
) -> None:
    code = "import crossrank.collectors.writer as w, sys; print(w.ShardWriter.__module__)"
    done = subprocess.run(
        [str(bin_folder / "python"), "-c", code],
        cwd=training_folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "crossrank.collectors.writer\n", done.stderr
