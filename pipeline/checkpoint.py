"""Two checkpoints, tensor by tensor: any layout, any format, without their training code.

python -m pipeline.checkpoint A B
crossrank checkpoint A B --optimizer
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from .engine import Engine, on_ray, ray_engine
from .options import add_common, out_folder, share
from .output import ResultFolder, exit_code, strict_json


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("a", type=Path, help="a checkpoint: file, or the folder of a framework")
    parser.add_argument("b", type=Path, help="the other")
    parser.add_argument(
        "--optimizer", action="store_true", help="compare the optimizer's state and masters too"
    )
    parser.add_argument("--all", action="store_true", help="list equal tensors in the result too")
    parser.add_argument("--layout", type=Path, help="YAML file with more layout rules")
    parser.add_argument(
        "--vocabulary", type=int, metavar="N", help="entries of the vocabulary without padding"
    )
    add_common(parser)


def run(args: Namespace) -> int:
    """Run the command; return its exit code: 2 when a file was unsafe, broken or missing."""
    from .checkpoint_compare import Question, compare_checkpoints, explain_checkpoint, local_engine
    from .checkpoint_text import checkpoint_text

    if args.explain:
        sys.stdout.write(explain_checkpoint(share(args, 1)))
        return 0
    question = Question(
        args.a, args.b, optimizer=args.optimizer, every=args.all,
        layout=str(args.layout or ""), vocabulary=args.vocabulary,
    )  # fmt: skip
    out = out_folder(args)

    def engine(size: int) -> Engine:
        if on_ray(args.engine, args.address):
            return ray_engine(args.workers, args.address)
        return local_engine(size, args.workers)

    limits, quiet = share(args, 1), args.quiet
    with (
        compare_checkpoints(question, limits, engine, quiet=quiet) as (result, store),
        ResultFolder(out, store) as folder,
    ):
        folder.write(result)
    sys.stdout.write(strict_json(result) + "\n" if args.json else checkpoint_text(result, out))
    broken = [w["text"] for w in result["warnings"] if w["code"].startswith("file_")]
    for text in broken:
        print(f"crossrank: {text}", file=sys.stderr)
    return 2 if broken else exit_code(_answer(result["verdict"]), args.fail_on)


def _answer(verdict: str) -> str:
    """Return the verdict in the words of `--fail-on`."""
    return "found" if verdict == "different" else verdict


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["checkpoint", *sys.argv[1:]]))
