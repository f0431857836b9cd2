"""Writes a dump of msprobe, or RL data, as shards of our own.

crossrank ingest SRC DUMP
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from collectors.parts import PartWriter, RunInfo

from .engine import Failure
from .engine_local import LocalEngine
from .errors import DumpError
from .loading import here
from .options import add_engine, open_engine, say
from .readers.msprobe.shard import read_shard
from .readers.rollouts import find_parts
from .rl_collection import open_collection
from .rl_ingest import ingest_collection
from .settings import cpu_count
from .shards import Shard, open_dump


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("source", help="a dump of msprobe, a folder or s3://...; or RL data")
    parser.add_argument("dump", type=Path, help="folder for the shards; new or empty")
    parser.add_argument("--step", type=int, nargs="+", default=[], help="only these steps")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    add_engine(parser)


def run(args: Namespace) -> int:
    """Run the command; return its exit code."""
    if find_parts(Path(args.source)):
        return _ingest_rollouts(args)
    source = open_dump(args.source, args.step)
    if source.kind != "msprobe":
        raise DumpError(f"{args.source} holds shards of crossrank already; nothing to do")
    if args.dump.exists() and (not args.dump.is_dir() or any(args.dump.iterdir())):
        raise DumpError(f"{args.dump} is not empty; give a new folder")
    engine, _ = open_engine(args, source)
    failed, ours = 0, False
    try:
        for part, notes in engine.map(ingest_shard, [Part(s, args.dump) for s in source.shards]):
            if isinstance(notes, Failure):
                failed, ours = failed + 1, ours or notes.ours
                print(f"crossrank: {part}: {notes.reason}", file=sys.stderr)
            elif notes:
                say(args, f"{part}: {notes}; what is whole in it was taken")
    finally:
        engine.close()
    print(f"{len(source.shards) - failed} of {len(source.shards)} shards written to {args.dump}")
    return 1 if ours else 2 if failed else 0


def _ingest_rollouts(args: Namespace) -> int:
    """Write RL data as shards; return the exit code."""
    source = open_collection(Path(args.source), args.step)
    if args.dump.exists() and (not args.dump.is_dir() or any(args.dump.iterdir())):
        raise DumpError(f"{args.dump} is not empty; give a new folder")
    engine = LocalEngine(args.workers or cpu_count())
    try:
        done = ingest_collection(source, args.dump, engine)
    finally:
        engine.close()
    failed = [(task, result) for task, result in done if isinstance(result, Failure)]
    for task, result in failed:
        print(f"crossrank: {task}: {result.reason}", file=sys.stderr)
    print(f"{len(done) - len(failed)} of {len(done)} parts written to {args.dump}")
    return 1 if any(result.ours for _, result in failed) else 2 if failed else 0


@dataclass(frozen=True)
class Part:
    """One rank folder of msprobe, and the dump that it goes to."""

    shard: Shard
    dump: Path

    def __str__(self) -> str:
        return f"rank {self.shard.rank}, step {self.shard.step} ({self.shard.path})"


def ingest_shard(part: Part) -> str:
    """Write one rank's records as a shard; return what was wrong with them, empty if nothing."""
    with TemporaryDirectory(prefix="crossrank-") as folder:
        read = read_shard(here(part.shard, Path(folder)).path, part.shard.rank)
    run = RunInfo(
        run_id="ingested", framework=str(read.header.get("framework") or ""), config=read.header
    )
    writer = PartWriter(part.dump, step=part.shard.step, rank=part.shard.rank, run=run)
    writer.write(
        {"calls": read.calls, "tensors": read.tensors},
        complete=not read.damage and not read.unfinished,
        damage=read.damage,
    )
    return read.damage or read.unfinished


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["ingest", *sys.argv[1:]]))
