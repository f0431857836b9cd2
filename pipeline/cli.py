"""The command line: `crossrank COMMAND ...` and `python -m pipeline.COMMAND ...` are the same."""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module

from collectors.errors import CrossrankError

from .interrupts import end_at_sigterm, interruptible

COMMANDS = {
    "analyze": "where NaN and infinities were born, and how they reached every rank",
    "compare": "two dumps, call by call: where they part, and what followed from it",
    "checkpoint": "two checkpoints of any layout and format, tensor by tensor",
    "rl": "two collections of RL data, sample by sample and token by token",
    "query": "SQL over the tables of a dump: calls, tensors, shard_files",
    "ingest": "turn an msprobe dump into shards, a fraction of the size",
    "report": "draw the HTML report again from a result folder",
}
"""Command -> what it answers; each is a module of this name, loaded when it is asked for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code.

    0: the work was done, whatever it found. 2: bad usage, or input that cannot be read. 3 and 4:
    what `--fail-on` asked for. Anything else is a bug of ours and shows its traceback.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    gc.set_threshold(50_000)  # many objects, few cycles: looking for these took a 20th of the time
    end_at_sigterm()
    try:
        with interruptible():
            return _run(given)
    except CrossrankError as error:
        print(f"crossrank: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("crossrank: interrupted", file=sys.stderr)
        return 130


def _run(given: list[str]) -> int:
    if given[:1] in (["-f"], ["--framework"]):
        from .msprobe_commands import run_msprobe_command

        return run_msprobe_command(given)
    args = _parser(given[:1]).parse_args(given)
    return int(import_module(f"{__package__}.{args.command}").run(args))


def _parser(asked: list[str]) -> ArgumentParser:
    parser = ArgumentParser(
        prog="crossrank", description="numerical debugging of distributed training"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if [name] == asked:
            import_module(f"{__package__}.{name}").add_arguments(command)
    return parser
