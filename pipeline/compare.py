"""Two dumps, call by call: the one place where they part, and what followed from it.

python -m pipeline.compare BENCH TARGET
crossrank compare BENCH TARGET --noise BENCH2 BENCH3
"""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from .compare_text import compare_text
from .comparison import Comparison, compare_dumps, counterparts, explain_comparison, renamed_names
from .options import add_common, open_engine, out_folder, say, share, unfinished
from .output import ResultFolder, exit_code, strict_json
from .shards import open_dump
from .store import Store

MAPPINGS = {"api": "APIs", "cell": "modules", "layer": "children of modules", "data": "tensors"}
"""Kind of a mapping -> what it names; the files are those of msprobe."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("bench", help="the dump that is taken for right: a folder or s3://...")
    parser.add_argument("target", help="the dump that is held against it")
    parser.add_argument("--step", type=int, nargs="+", default=[], help="only these steps")
    parser.add_argument(
        "--noise", nargs="+", default=[], metavar="RUN",
        help="further runs of the benchmark: what differs no more than they do is no difference",
    )  # fmt: skip
    parser.add_argument(
        "--ranks", type=_rank_pair, nargs="+", default=[], metavar="TARGET:BENCH",
        help="which ranks are held against each other; default: by number, or by blocks where one "
        "dump has a multiple of the other's",
    )  # fmt: skip
    for kind, names in MAPPINGS.items():
        parser.add_argument(
            f"--{kind}-mapping", type=Path, metavar="YAML",
            help=f"{names} of the target that stand for others in the benchmark",
        )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="every bit must be equal")
    add_common(parser)


def run(args: Namespace) -> int:
    """Run the command; return its exit code."""
    bench, target = open_dump(args.bench, args.step), open_dump(args.target, args.step)
    noise = tuple(open_dump(path, args.step) for path in args.noise)
    ranks = counterparts(bench, target, args.ranks)
    renamed = renamed_names({kind: getattr(args, f"{kind}_mapping") for kind in MAPPINGS})
    comparison = Comparison(bench, target, noise, args.strict, ranks, renamed)
    if args.explain:
        sys.stdout.write(explain_comparison(comparison, share(args, 1)))
        return 0
    engine, worker = open_engine(args, target)
    say(args, f"{len(target.shards)} shards, {engine.name} engine, {engine.workers} at a time")
    out = out_folder(args)
    with Store(share(args, 1), comparison.params) as store, ResultFolder(out, store) as folder:
        work = unfinished(out)
        result = compare_dumps(comparison, store, engine, worker, work=work, quiet=args.quiet)
        folder.write(result)
    shutil.rmtree(work)
    sys.stdout.write(strict_json(result) + "\n" if args.json else compare_text(result, out))
    verdict = "found" if result["verdict"] == "different" else result["verdict"]
    return exit_code(verdict, args.fail_on, result["warnings"])


def _rank_pair(text: str) -> tuple[int, int]:
    target, _, bench = text.partition(":")
    if not target.isdecimal() or not bench.isdecimal():
        raise ArgumentTypeError(
            f"{text!r}: expected a rank of the target and one of the benchmark: 3:1"
        )
    return int(target), int(bench)


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["compare", *sys.argv[1:]]))
