"""crossrank beside msprobe on the same dump: time, peak memory, size.

    python benchmarks/analyze.py --ranks 8 --calls 20000
    python benchmarks/analyze.py --ranks 64 --calls 20000 --extrapolate 8 16

A dump is made of R ranks x N calls (seeded): every 16th call an all_reduce of all ranks, a NaN born
in the middle on one rank, in both formats: msprobe's JSON, and shards. Then msprobe 26.2.0 (in a
virtual environment of its own, .venv-peer), crossrank on the JSON, and crossrank on the shards take
turns. Times are of the whole process, its start included; the table gives medians and ratios,
because machines are noisy. With --extrapolate, msprobe runs at the smaller numbers of ranks only,
and its time is continued along the straight line through them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.made_dump import make_dump

ROOT = Path(__file__).resolve().parent.parent
PEER_VENV = ROOT / ".venv-peer"
PEER = "mindstudio-probe==26.2.0"


@dataclass
class Measure:
    """One command: seconds of each run, and the peak of the memory of all its processes in MiB."""

    seconds: list[float]
    peak_mb: float

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def main() -> None:
    args = arguments()
    peer = peer_command()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        work = Path(folder)
        if args.extrapolate:
            report = extrapolated(args, peer, work)
        else:
            report = measured(args, peer, work, args.ranks)
    print(json.dumps(report, indent=1) if args.json else table(report))


def measured(args: argparse.Namespace, peer: list[str], work: Path, ranks: int) -> dict:
    """Return all three side by side at one number of ranks."""
    source, shards = dumps(args, work, ranks)
    commands = {
        "msprobe": [*peer, "-i", str(source / "step0"), "-o", str(work / "peer")],
        "json": crossrank("analyze", source, work / "from_json"),
        "shards": crossrank("analyze", shards, work / "from_shards"),
    }
    found = take_turns(commands, args.repeat)
    check(work, ranks)
    return summary(args, ranks, found, size(source), size(shards))


def extrapolated(args: argparse.Namespace, peer: list[str], work: Path) -> dict:
    """Return crossrank at many ranks beside msprobe's line through two smaller numbers."""
    low, high = args.extrapolate
    points = {}
    for ranks in (low, high):
        folder = work / str(ranks)
        source, _ = dumps(args, folder, ranks)
        command = [*peer, "-i", str(source / "step0"), "-o", str(folder / "peer")]
        points[ranks] = take_turns({"msprobe": command}, 1)["msprobe"]
        shutil.rmtree(folder)
    source, shards = dumps(args, work, args.ranks)
    commands = {
        "json": crossrank("analyze", source, work / "from_json"),
        "shards": crossrank("analyze", shards, work / "from_shards"),
    }
    found = take_turns(commands, args.repeat)
    check(work, args.ranks)
    slope = (points[high].median - points[low].median) / (high - low)
    seconds = points[high].median + slope * (args.ranks - high)
    peak = points[high].peak_mb + (points[high].peak_mb - points[low].peak_mb) / (high - low) * (
        args.ranks - high
    )
    report = summary(
        args, args.ranks, {"msprobe": Measure([seconds], peak), **found}, size(source), size(shards)
    )
    report["msprobe"]["extrapolated_from"] = {str(r): asdict(m) for r, m in points.items()}
    return report


def dumps(args: argparse.Namespace, work: Path, ranks: int) -> tuple[Path, Path]:
    """Make the same dump in both formats."""
    source, shards = work / "json", work / "shards"
    print(f"making {ranks} ranks x {args.calls} calls", file=sys.stderr)
    make_dump(source, ranks=ranks, calls=args.calls, seed=args.seed)
    command = [sys.executable, "-m", "pipeline.ingest", str(source), str(shards), "--quiet"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return source, shards


def take_turns(commands: dict[str, list[str]], repeat: int) -> dict[str, Measure]:
    """Run each command `repeat` times, one after the other, so that noise hits all alike."""
    found: dict[str, Measure] = {}
    for _ in range(repeat):
        for name, command in commands.items():
            seconds, peak = run(command)
            before = found.setdefault(name, Measure([], 0.0))
            found[name] = Measure([*before.seconds, seconds], max(before.peak_mb, peak))
            print(f"{name}: {seconds:.2f} s, {peak:.0f} MiB", file=sys.stderr)
    return found


def run(command: list[str]) -> tuple[float, float]:
    """Return wall seconds of a process, and the peak of the memory of it and its children."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, tree_memory(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return time.perf_counter() - start, peak


def tree_memory(pid: int) -> float:
    """Return the resident memory of a process and its descendants in MiB; Linux only."""
    total = 0.0
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        total = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += tree_memory(int(child))
    except (OSError, IndexError):  # it ended meanwhile
        pass
    return total


def check(work: Path, ranks: int) -> None:
    """Both answers must name the planted call, or the times mean nothing."""
    for name in ("from_json", "from_shards"):
        result = json.loads((work / name / "result.json").read_text())
        (origin,) = result["origins"]
        assert origin["rank"] == ranks // 2, origin
        assert len(origin["reached"]) == ranks - 1, origin


def summary(
    args: argparse.Namespace, ranks: int, found: dict[str, Measure], source: int, shards: int
) -> dict:
    report: dict = {"ranks": ranks, "calls": args.calls, "repeat": args.repeat}
    for name, measure in found.items():
        report[name] = {"seconds": measure.median, "peak_mb": measure.peak_mb}
    report["json"]["size_mb"], report["shards"]["size_mb"] = source / 2**20, shards / 2**20
    report["speedup_shards"] = found["msprobe"].median / found["shards"].median
    report["speedup_json"] = found["msprobe"].median / found["json"].median
    report["size_ratio"] = source / shards
    return report


def table(report: dict) -> str:
    ways = {
        "msprobe": "msprobe on JSON",
        "json": "crossrank on JSON",
        "shards": "crossrank on shards",
    }
    lines = [f"{report['ranks']} ranks x {report['calls']} calls, median of {report['repeat']}", ""]
    lines.append(f"{'':22}{'seconds':>10}{'ratio':>9}{'peak MiB':>10}{'dump MiB':>10}")
    for name, title in ways.items():
        row = report[name]
        ratio = report["msprobe"]["seconds"] / row["seconds"]
        size_mb = row.get("size_mb", report["json"]["size_mb"])
        lines.append(
            f"{title:22}{row['seconds']:10.2f}{ratio:8.1f}x{row['peak_mb']:10.0f}{size_mb:10.1f}"
        )
    lines.append(f"\nshards are {report['size_ratio']:.1f} times smaller than the JSON")
    if points := report["msprobe"].get("extrapolated_from"):
        measured_at = ", ".join(f"{r} ranks: {p['seconds'][0]:.1f} s" for r, p in points.items())
        lines.append(f"msprobe is extrapolated along a straight line from {measured_at}")
    return "\n".join(lines)


def crossrank(command: str, dump: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", f"pipeline.{command}", str(dump), "--out", str(out), "--quiet"]


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def peer_command() -> list[str]:
    """Return the peer's command for this job."""
    return [peer_program(), "overflow_check"]


def peer_program(venv: Path = PEER_VENV, *more: str) -> str:
    """Return the peer's program; installs it beside us, with more packages, the first time."""
    program = venv / "bin" / "msprobe"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin" / "pip"), "install", "-q", PEER, *more], check=True)
    return str(program)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="crossrank beside msprobe on the same dump")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--extrapolate", type=int, nargs=2, metavar="RANKS")
    parser.add_argument("--work", type=Path, help="folder for the dumps; default: the system's")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
