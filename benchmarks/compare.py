"""crossrank compare beside msprobe compare on the same two dumps: time and peak memory.

    python benchmarks/compare.py --calls 20000
    python benchmarks/compare.py --calls 20000 --ranks 8

Two dumps are made (seeded): transformer blocks, and in the target one call in the middle whose
output is 1 % larger, with all that follows from it. msprobe 26.2.0 (in a virtual environment of its
own, .venv-peer-torch), crossrank on the JSON, and crossrank on shards take turns, all on one rank,
since msprobe takes ranks one after the other. With --ranks, crossrank on shards of that many ranks
takes its turn too. Times are of the whole process, its start included; the table gives medians and
ratios, because machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.analyze import ROOT, Measure, crossrank, peer_program, take_turns
from benchmarks.made_pair import make_pair, planted_call
from benchmarks.made_shards import as_shards

PEER_VENV = ROOT / ".venv-peer-torch"
"""msprobe imports torch to compare dumps of PyTorch."""


def main() -> None:
    args = arguments()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        report = measured(args, Path(folder))
    print(json.dumps(report, indent=1) if args.json else table(report))


def measured(args: argparse.Namespace, work: Path) -> dict:
    """Return all of them side by side."""
    one, many = pair(args, work / "one", 1), None
    commands = {
        "msprobe": [peer_program(PEER_VENV, "torch==2.13.0"), "compare", "-tp",
                    rank0(one["json"][1]), "-gp", rank0(one["json"][0]), "-o", str(work / "peer")],
        "json": compare(one["json"], work / "from_json"),
        "shards": compare(one["shards"], work / "from_shards"),
    }  # fmt: skip
    if args.ranks > 1:
        many = pair(args, work / "many", args.ranks)
        commands["many"] = compare(many["shards"], work / "from_ranks")
    found = take_turns(commands, args.repeat)
    for name in ("from_json", "from_shards", *["from_ranks"] * bool(many)):
        check(work / name, args.calls)
    return summary(args, found)


def pair(args: argparse.Namespace, work: Path, ranks: int) -> dict[str, tuple[Path, Path]]:
    """Make the two dumps in both formats; return (benchmark, target) of each."""
    print(f"making 2 x {ranks} ranks x {args.calls} calls", file=sys.stderr)
    sides = make_pair(work / "json", ranks=ranks, calls=args.calls, seed=args.seed)
    shards = [as_shards(side, work / "shards" / side.name) for side in sides]
    return {"json": sides, "shards": (shards[0], shards[1])}


def compare(sides: tuple[Path, Path], out: Path) -> list[str]:
    return [*crossrank("compare", sides[0], out)[:4], str(sides[1]), "--out", str(out), "--quiet"]


def rank0(side: Path) -> str:
    return str(side / "step0" / "rank0" / "dump.json")


def check(out: Path, calls: int) -> None:
    """Every answer must name the planted call and nothing else, or the times mean nothing."""
    result = json.loads((out / "result.json").read_text())
    first = result["first_divergence"]
    assert first, result["verdict"]
    assert first["call"] == planted_call(calls), first
    assert {f["status"] for f in result["findings"]} == {"suspect", "propagated"}


def summary(args: argparse.Namespace, found: dict[str, Measure]) -> dict:
    report: dict = {"calls": args.calls, "repeat": args.repeat, "ranks": args.ranks}
    for name, measure in found.items():
        report[name] = {"seconds": measure.median, "peak_mb": measure.peak_mb}
    report["speedup_shards"] = found["msprobe"].median / found["shards"].median
    report["speedup_json"] = found["msprobe"].median / found["json"].median
    if "many" in found:
        report["ranks_over_one"] = found["many"].median / found["shards"].median
        report["memory_over_one"] = found["many"].peak_mb / found["shards"].peak_mb
    return report


def table(report: dict) -> str:
    ways = {
        "msprobe": "msprobe on JSON",
        "json": "crossrank on JSON",
        "shards": "crossrank on shards",
        "many": f"crossrank, {report['ranks']} ranks",
    }
    lines = [f"two dumps x {report['calls']} calls, median of {report['repeat']}", ""]
    lines.append(f"{'':22}{'seconds':>10}{'ratio':>9}{'peak MiB':>10}")
    for name, title in ways.items():
        if row := report.get(name):
            ratio = report["msprobe"]["seconds"] / row["seconds"]
            lines.append(f"{title:22}{row['seconds']:10.2f}{ratio:8.1f}x{row['peak_mb']:10.0f}")
    if "ranks_over_one" in report:
        lines.append(
            f"\n{report['ranks']} ranks take {report['ranks_over_one']:.1f} times the time of one "
            f"and {report['memory_over_one']:.1f} times its memory"
        )
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="crossrank compare beside msprobe compare")
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--ranks", type=int, default=8, help="of crossrank's second measurement")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder for the dumps; default: the system's")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
