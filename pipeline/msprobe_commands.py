"""The command lines of msprobe under our name, with its flags and its output files.

crossrank -f pytorch nan_analyze -i STEP_DIR -o DIR
crossrank -f pytorch compare -i compare.json -o DIR -s
crossrank -f pytorch config_check --compare CKPT1 CKPT2 -o X.json
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import msprobe_compare
from .analysis import analyze_dump, run_store
from .engine_local import LocalEngine
from .errors import DumpError
from .readers.msprobe.raw import raw_record
from .settings import limits
from .shards import open_dump

NOTHING_FOUND = "Cannot find any anomaly node, no need to generate analyze file."


def run_msprobe_command(argv: Sequence[str]) -> int:
    """Run one command line of msprobe; return its exit code."""
    parser = ArgumentParser(prog="crossrank")
    parser.add_argument("-f", "--framework", choices=["pytorch", "mindspore"], required=True)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    nan = commands.add_parser("nan_analyze", help="first NaN or infinity of a step")
    nan.add_argument("-i", "--input_path", type=Path, required=True, help="a step folder")
    nan.add_argument("-o", "--output_path", type=Path, default=Path("output"), help="for the file")
    nan.set_defaults(run=_nan_analyze)
    compare = commands.add_parser("compare", help="two dumps, row by row")
    msprobe_compare.add_arguments(compare)
    compare.set_defaults(run=msprobe_compare.run)
    config = commands.add_parser("config_check", help="compare two checkpoints")
    config.add_argument(
        "-c", "--compare", type=Path, nargs=2, required=True, metavar="CKPT", help="two checkpoints"
    )
    config.add_argument("-o", "--output", type=Path, help="for the file")
    config.set_defaults(run=_config_check)
    args = parser.parse_args(argv)
    return int(args.run(args))


def _config_check(args: Namespace) -> int:
    from .msprobe_checkpoint import compare_checkpoints_as_msprobe

    return compare_checkpoints_as_msprobe(args)


def _nan_analyze(args: Namespace) -> int:
    """Write `anomaly_analyze_<time in ns>.json`, or say that there is nothing to write."""
    dump = open_dump(args.input_path)
    if dump.kind != "msprobe":
        raise DumpError(
            f"{args.input_path} holds shards of crossrank; nan_analyze takes a step folder of "
            "msprobe. For shards: crossrank analyze DUMP"
        )
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    folders = {(shard.step, shard.rank): shard.path for shard in dump.shards}
    with run_store(dump, limits(1), nan_only=False) as store:
        result = analyze_dump(dump, store, LocalEngine(1), limits(1))
    for step, rank, call in _places(result):
        found[f"rank_{rank}"].append(raw_record(folders[step, rank], call))
    if not found:
        print(NOTHING_FOUND)
        return 0
    args.output_path.mkdir(parents=True, exist_ok=True)
    file = args.output_path / f"anomaly_analyze_{time.time_ns()}.json"
    file.write_text(json.dumps(found, indent=2))  # bare NaN, as msprobe has it
    print(f"The analyze result is saved in: {file}")
    return 0


def _places(result: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    """Yield (step, rank, call) of every origin that is on record."""
    for number, origin in enumerate(result["origins"]):
        if origin["kind"] == "unrecorded":  # where it was first seen instead
            seen = next((r for r in result["ranks"] if r["origin"] == number), None)
            if seen:
                yield seen["step"], seen["rank"], seen["first_symptom"]["call"]
            continue
        for member in origin.get("members") or [origin]:
            yield origin["step"], member["rank"], member["call"]
