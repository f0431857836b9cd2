"""The flags that commands share."""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from .engine import Engine, on_ray, ray_engine
from .engine_local import LocalEngine, may_fork
from .nodes import SCHEME, open_nodes
from .settings import Limits, cpu_count, limits
from .shards import Dump, open_dump
from .wording import count

JSON_PIECE, PARQUET_PIECE = 4 * 2**20, 2**20
"""Bytes that are worth a worker of their own."""

UNITS = {"": 1, "m": 1, "mib": 1, "mb": 1, "g": 1024, "gib": 1024, "gb": 1024}


def add_common(parser: ArgumentParser) -> None:
    """Declare where results go and how much of which machine is used."""
    parser.add_argument("--out", type=Path, help="folder for the results")
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON, nothing else"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument(
        "--fail-on", default="", metavar="found,unknown", type=_verdicts,
        help="exit with 3 when something was found, 4 when it cannot be told",
    )  # fmt: skip
    parser.add_argument(
        "--explain", action="store_true", help="print the SQL that would run, bound, and stop"
    )
    add_engine(parser)


def add_engine(parser: ArgumentParser) -> None:
    """Declare what computes."""
    parser.add_argument(
        "--engine", choices=["auto", "local", "ray"], default="auto",
        help="auto: Ray inside a Ray job or with --address, else this machine",
    )  # fmt: skip
    parser.add_argument("--address", help="of a Ray cluster")
    parser.add_argument("--workers", type=int, default=0, help="tasks that run at the same time")
    parser.add_argument("--memory", type=_megabytes, help="for all workers here: 4096, 8GiB")


def out_folder(args: Namespace) -> Path:
    """Return where results go: `--out`, or a folder of its own under ./crossrank_out."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return args.out or Path("crossrank_out") / f"{args.command}-{stamp}"


def open_for_engine(args: Namespace) -> tuple[Dump, Engine, Limits | None]:
    """Return the dump, what computes, and what each of its workers may use.

    A dump that lies on the nodes themselves is looked for on each of them.
    """
    if not args.per_node and not args.dump.startswith(SCHEME):
        dump = open_dump(args.dump, args.step)
        engine, worker = open_engine(args, dump)
    else:
        path = args.dump.removeprefix(SCHEME)
        ray = on_ray(args.engine, args.address)
        engine = ray_engine(args.workers, args.address) if ray else LocalEngine(1)
        dump, found = open_nodes(path, args.step, engine)
        for node, text in found.items():
            say(args, f"{node}: {text}")
        worker = None
        if not ray:
            engine, worker = open_engine(args, dump)
    own = f"each with {worker.threads} threads and {worker.memory_mb} MiB" if worker else "on Ray"
    say(args, f"{count(len(dump.shards), 'shard')}, {engine.workers} tasks at a time, {own}")
    return dump, engine, worker


def open_engine(args: Namespace, dump: Dump) -> tuple[Engine, Limits | None]:
    """Return what computes, and what each of its workers may use; None: its share of its node.

    On this machine, as many work at the same time as there are CPUs, once there is enough to do to
    pay for starting them: in threads for Parquet, which DuckDB reads, in processes for msprobe's
    JSON, which Python parses.
    """
    if on_ray(args.engine, args.address):
        return ray_engine(args.workers, args.address), None
    json = dump.kind == "msprobe"
    ranks = len({shard.rank for shard in dump.shards})
    pieces = sum(shard.bytes for shard in dump.shards) // (JSON_PIECE if json else PARQUET_PIECE)
    workers = args.workers or max(1, min(cpu_count(), ranks, pieces))
    engine = LocalEngine(workers, processes=json, forked=json and may_fork())
    return engine, share(args, workers)


def unfinished(out: Path) -> Path:
    """Return the folder beside `out` in which a run keeps what it has finished."""
    return out.parent / f".{out.name}.unfinished"


def share(args: Namespace, workers: int) -> Limits:
    """Return what each of `workers` may use of this machine."""
    return limits(workers, memory=args.memory)


def say(args: Namespace, text: str) -> None:
    """Tell about progress on stderr."""
    if not args.quiet:
        print(text, file=sys.stderr, flush=True)


def _verdicts(text: str) -> frozenset[str]:
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    if words - {"found", "unknown"}:
        raise ArgumentTypeError(f"{text!r}: expected found, unknown or both with a comma")
    return words


def _megabytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*([a-zA-Z]*)", text)
    if not match or match[2].lower() not in UNITS:
        raise ArgumentTypeError(f"{text!r}: expected MiB as a number, or 8GiB")
    return int(match[1]) * UNITS[match[2].lower()]
