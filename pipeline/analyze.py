"""The main job: where each NaN and infinity of a dump was born, and how it spread.

python -m pipeline.analyze DUMP
ray job submit --working-dir . -- python -m pipeline.analyze DUMP
crossrank analyze DUMP
"""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from .analysis import analyze_dump, explain_analysis, run_store
from .interrupts import interruptible
from .options import add_common, open_for_engine, out_folder, say, share, unfinished
from .output import ResultFolder, exit_code, strict_json
from .render_text import analyze_text
from .shards import open_dump


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        "dump",
        help="a dump of crossrank or msprobe: a folder, s3://bucket/folder, or node:///folder "
        "where every node of the cluster holds some of its ranks",
    )
    parser.add_argument(
        "--per-node", action="store_true", help="the same as node:// before the folder"
    )
    parser.add_argument("--step", type=int, nargs="+", default=[], help="only these steps")
    parser.add_argument(
        "--nan-only", action="store_true", help="start from NaN alone, take infinities for granted"
    )
    add_common(parser)


def run(args: Namespace) -> int:
    """Run the command; return its exit code."""
    say(args, f"pipeline.analyze from {Path(__file__).resolve()}")
    if args.explain:
        dump = open_dump(args.dump, args.step)
        sys.stdout.write(explain_analysis(dump, share(args, 1), nan_only=args.nan_only))
        return 0
    dump, engine, worker = open_for_engine(args)
    out = out_folder(args)
    work = unfinished(out)
    try:
        with (
            interruptible(),
            run_store(dump, share(args, 1), nan_only=args.nan_only) as store,
            ResultFolder(out, store) as folder,
        ):
            result = analyze_dump(dump, store, engine, worker, work=work, quiet=args.quiet)
            for node, tasks in engine.placed.items():
                say(args, f"{tasks} tasks on {node}")
            folder.write(result)
    except KeyboardInterrupt:
        say(args, f"what is finished is kept: the same command with --out {out} goes on from there")
        raise
    shutil.rmtree(work)
    sys.stdout.write(strict_json(result) + "\n" if args.json else analyze_text(result, out))
    return exit_code(result["verdict"], args.fail_on, result["warnings"])


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["analyze", *sys.argv[1:]]))
