"""Draws the HTML report of a result folder again.

crossrank report RESULT
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from .errors import UsageError
from .output import REPORT, RESULT
from .reports import TOOLS, draw


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("result", type=Path, help="folder that holds result.json")


def run(args: Namespace) -> int:
    """Run the command; return its exit code."""
    source = args.result / RESULT
    try:
        result = json.loads(source.read_text())
        tool = result["tool"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(f"{source} is not there or no result of crossrank") from None
    if tool not in TOOLS:
        raise UsageError(f"{source} is a result of {tool}; expected one of {', '.join(TOOLS)}")
    (args.result / REPORT).write_text(draw(result, args.result))
    print(args.result / REPORT)
    return 0


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["report", *sys.argv[1:]]))
