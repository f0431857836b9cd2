"""Two collections of RL data, sample by sample and token by token.

crossrank rl A B
crossrank rl --pair rollout_log_prob old_log_prob DUMP
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from .engine import Engine, on_ray, ray_engine
from .engine_local import LocalEngine, may_fork
from .errors import UsageError
from .options import add_common, say
from .rl_nodes import open_on_nodes
from .rl_tasks import Sides, begun, list_samples
from .settings import cpu_count

PIECE_BYTES = 8 * 2**20
"""What a worker is worth its start for."""
PROCESS_BYTES = 4 * 2**30
"""From this size on, so are processes that import everything anew, rather than threads."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument(
        "a", help="RL data: of crossrank, SingleSave, or a trainer; node://FOLDER: on each node"
    )
    parser.add_argument("b", nargs="?", help="what to compare with; not with --pair")
    parser.add_argument(
        "--pair", nargs=2, metavar=("KEY_A", "KEY_B"),
        help="compare two log-probs of one run: rollout_log_prob old_log_prob",
    )  # fmt: skip
    parser.add_argument("--step", type=int, nargs="+", default=[], help="only these steps")
    add_common(parser)


def run(args: Namespace) -> int:
    """Run the command; return its exit code."""
    if bool(args.pair) == bool(args.b):
        raise UsageError("give two collections (rl A B), or one with --pair KEY_A KEY_B")
    say(args, f"pipeline.rl from {Path(__file__).resolve()}")
    on_cluster = on_ray(args.engine, args.address)
    engine: Engine = LocalEngine(1)
    if on_cluster:
        engine = ray_engine(args.workers, args.address)
    a = open_on_nodes(args.a, args.step, engine)
    b = open_on_nodes(args.b, args.step, engine) if args.b else a
    sides = Sides(a, b, tuple(args.pair) if args.pair else None)
    if not on_cluster:
        engine = _local_engine(args.workers, sides)
    with closing(engine), ThreadPoolExecutor(1) as beside:
        listed = begun(list_samples(sides, engine), beside)
        from .rl_answer import answer  # loads DuckDB, which takes as long as listing the samples

        return answer(args, sides, listed, engine, beside)


def _local_engine(asked: int | None, sides: Sides) -> Engine:
    """Return one with processes where they are cheap, or there is much to do; else with threads."""
    size = sum(part.bytes for side in (sides.a, sides.b) for part in side.parts)
    workers = asked or max(1, min(cpu_count(), size // PIECE_BYTES))
    forked = may_fork()
    return LocalEngine(workers, processes=forked or size > PROCESS_BYTES, forked=forked)


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["rl", *sys.argv[1:]]))
