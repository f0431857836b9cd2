"""Compares two collections of RL data from a script, under msprobe's name.

    SingleComparator.compare("dump1", "dump2", "./compared")

The work is done by `crossrank rl` in a process of its own: a training process needs no DuckDB.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .errors import CrossrankError

ROOMS = Path(__file__).resolve().parent.parent


class SingleComparator:
    """Compares two folders that SingleSave wrote, ours or msprobe's."""

    @staticmethod
    def compare(
        dir1: str | Path,
        dir2: str | Path,
        output_path: str | Path = "./crossrank_compare_output",
        num_processes: int = 8,
    ) -> dict[str, Any]:
        """Write {key}.xlsx, result.json and report.html, and return the result.

        Args:
            dir1: one side.
            dir2: the other.
            output_path: folder for the results.
            num_processes: workers at most.

        Raises:
            CrossrankError: a side cannot be read.
        """
        code = (
            f"import sys; sys.path.insert(0, {str(ROOMS)!r}); from pipeline.cli import main; "
            "sys.exit(main(sys.argv[1:]))"
        )
        command = [sys.executable, "-c", code, "rl", str(dir1), str(dir2), "--quiet"]
        command += ["--out", str(output_path), "--workers", str(num_processes)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no output"]
            raise CrossrankError(lines[-1].replace("crossrank: ", "", 1))
        result: dict[str, Any] = json.loads((Path(output_path) / "result.json").read_text())
        return result
