"""What a lost node costs: `analyze` on three raylets, one of which is switched off in the middle.

    python benchmarks/lost_node.py --ranks 64 --calls 20000

The dump is that of benchmarks/scale.py, on a disk that all nodes share. Three hosts of this machine
(namespaces with a network, processes and a disk of their own; needs root) each run a raylet with
one CPU. Undisturbed runs and runs in which a host goes away, without a word, once a third of its
shards are read, take turns. Both have to name the planted call and to have read every rank.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.scale import check, made
from tests.raylets import Cluster, raylets


def main() -> None:
    args = arguments()
    whole, lost = [], []
    for _ in range(args.repeat):
        with raylets(3) as cluster:
            made(cluster.shared / "dump", args.ranks, args.calls)
            seconds(cluster, args)  # the first run starts the workers
            whole.append(seconds(cluster, args))
            lost.append(seconds(cluster, args, lose=True))
    report = {
        "ranks": args.ranks,
        "calls": args.calls,
        "seconds": statistics.median(whole),
        "seconds_with_a_lost_node": statistics.median(lost),
        "seconds_lost": statistics.median(b - a for a, b in zip(whole, lost, strict=True)),
    }
    print(json.dumps(report, indent=1))


def seconds(cluster: Cluster, args: argparse.Namespace, *, lose: bool = False) -> float:
    """Return how long a run takes; with `lose`, one that loses its second node."""
    out = "lost" if lose else "whole"
    where = ["--address", f"{cluster.head.address}:6379", "--out", f"/data/{out}", "--quiet"]
    command = cluster.command("/data/dump/shards", *where, "--workers", str(args.tasks))
    work = cluster.shared / f".{out}.unfinished"
    began = time.monotonic()
    run = subprocess.Popen(command, env=cluster.variables, stdout=subprocess.DEVNULL)
    while lose and len(list(work.glob("*/*.shards.parquet"))) < args.tasks // 3:
        if run.poll() is not None:
            raise SystemExit("it was over before a node could be lost: take more ranks")
        time.sleep(0.01)
    if lose:
        cluster.network.hosts[1].end()
    if run.wait():
        raise SystemExit(f"a run ended with {run.returncode}")
    took = time.monotonic() - began
    check(cluster.shared / out, args.ranks)
    return took


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--tasks", type=int, default=12, help="into how many the ranks are put")
    parser.add_argument("--repeat", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
