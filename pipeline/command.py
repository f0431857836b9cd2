"""Where the installed `crossrank` begins: makes the rooms importable under their own names.

The wheel holds them inside of `crossrank`, since a training repository may well have a `pipeline/`
of its own. In this process, and in the workers it starts, ours come first.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOMS = str(Path(__file__).resolve().parent.parent)


def main() -> int:
    """Run the command line."""
    sys.path.insert(0, ROOMS)
    from pipeline.cli import main as run

    return run()
