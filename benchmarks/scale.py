"""How time and memory of `analyze` grow with the number of ranks.

    python benchmarks/scale.py --ranks 64 256 1024 --calls 20000

The dumps are those of benchmarks/analyze.py: every 16th call an all_reduce of all ranks, a NaN born
in the middle on one rank, which all others get. Two shards are made, the other ranks are links to
the first of them: each rank is read and analysed as if it were its own, from the page cache. The
numbers of ranks take turns, since machines are noisy; medians are printed. msprobe 26.2.0 runs once
on 8 ranks of the same dump, for its time per rank, which does not change with their number.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.analyze import crossrank, peer_command, run, size
from benchmarks.made_dump import make_dump

ROOT = Path(__file__).resolve().parent.parent
PEER_RANKS = 8


def main() -> None:
    args = arguments()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        work = Path(folder)
        dumps = {ranks: made(work / str(ranks), ranks, args.calls) for ranks in args.ranks}
        found: dict[int, list[tuple[float, float]]] = {ranks: [] for ranks in dumps}
        for _ in range(args.repeat):
            for ranks, dump in dumps.items():
                found[ranks].append(run(crossrank("analyze", dump, work / "out")))
                check(work / "out", ranks)
                print(f"{ranks} ranks: {found[ranks][-1][0]:.1f} s", file=sys.stderr)
        report = {
            "calls": args.calls,
            "repeat": args.repeat,
            "seconds_per_rank": {
                ranks: statistics.median(seconds for seconds, _ in runs) / ranks
                for ranks, runs in found.items()
            },
            "peak_rss_mb": {ranks: max(peak for _, peak in runs) for ranks, runs in found.items()},
            "mb_read": {ranks: size(dump) / 2**20 for ranks, dump in dumps.items()},
            "peer_seconds_per_rank": None if args.no_peer else peer(work / "peer", args.calls),
        }
    print(json.dumps(report, indent=1) if args.json else table(report))


def made(folder: Path, ranks: int, calls: int) -> Path:
    """Return a dump of so many ranks: two shards, and links to the first of them."""
    print(f"making {ranks} ranks x {calls} calls", file=sys.stderr)
    born = ranks // 2
    make_dump(folder / "json", ranks=ranks, calls=calls, seed=1, only=(0, born))
    shards = folder / "shards"
    command = [sys.executable, "-m", "pipeline.ingest", folder / "json", shards, "--quiet"]
    subprocess.run(list(map(str, command)), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    first = shards / "step=0" / "rank=0"
    for rank in set(range(ranks)) - {0, born}:
        place = first.with_name(f"rank={rank}")
        place.mkdir()
        for file in first.iterdir():
            os.link(file, place / file.name)
    return shards


def check(out: Path, ranks: int) -> None:
    """The answer must name the planted call, or the times mean nothing."""
    (origin,) = json.loads((out / "result.json").read_text())["origins"]
    assert origin["rank"] == ranks // 2, origin
    assert len(origin["reached"]) == ranks - 1, origin


def peer(folder: Path, calls: int) -> float:
    """Return msprobe's seconds per rank."""
    make_dump(folder / "json", ranks=PEER_RANKS, calls=calls, seed=1)
    seconds, _ = run([*peer_command(), "-i", str(folder / "json" / "step0"), "-o", str(folder)])
    return seconds / PEER_RANKS


def table(report: dict) -> str:
    theirs = report["peer_seconds_per_rank"]
    lines = [f"{report['calls']} calls a rank, median of {report['repeat']}", ""]
    lines.append(f"{'ranks':>8}{'seconds':>10}{'ms a rank':>12}{'peak MiB':>10}{'read MiB':>10}")
    for ranks, seconds in report["seconds_per_rank"].items():
        lines.append(
            f"{ranks:8}{seconds * ranks:10.1f}{1000 * seconds:12.1f}"
            f"{report['peak_rss_mb'][ranks]:10.0f}{report['mb_read'][ranks]:10.0f}"
            + (f"   msprobe takes {theirs / seconds:.0f} times as long" if theirs else "")
        )
    if theirs:
        lines.append(f"\nmsprobe takes {1000 * theirs:.0f} ms a rank ({PEER_RANKS} ranks)")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="time and memory by number of ranks")
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true", help="leave msprobe out")
    parser.add_argument("--work", type=Path, help="folder for the dumps; default: the system's")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
