"""crossrank beside msprobe's SingleComparator on the same RL data: time, peak memory, size.

    python benchmarks/rl.py --ranks 8 --steps 50

Two runs are made of R ranks x S steps x 6 keys x [64, 1024] (seeded): token ids, a mask, engine
log-probs in bfloat16, two log-probs in float32, advantages; responses of 50 to 1024 tokens, padded;
log-probs of the two runs apart by noise. Both collections are written as SingleSave of msprobe does
(float32 .npy and .json) and as shards. Then msprobe 26.2.0 (in an environment of its own,
.venv-peer), crossrank on either form, and one process of plain NumPy that only loads both sides and
subtracts take turns. Times are of whole processes, but NumPy's, whose imports do not count.
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

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.analyze import PEER_VENV, peer_command, size, take_turns
from tests.rollouts import rounded, save, save_npy

KEYS = (
    "response_ids",
    "response_mask",
    "rollout_log_prob",
    "old_log_prob",
    "ref_log_prob",
    "advantages",
)
PEER = """
import sys
from msprobe.core import SingleComparator
SingleComparator.compare(*sys.argv[1:4])
"""
NUMPY = """
import sys, time
import numpy as np
from pathlib import Path
start = time.perf_counter()
for file in Path(sys.argv[1]).rglob("*.npy"):
    a, b = np.load(file), np.load(sys.argv[2] + str(file)[len(sys.argv[1]):])
    np.abs(a - b).max()
print(time.perf_counter() - start)
"""


def main() -> None:
    args = arguments()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # both run as installed: compiled once
    peer_command()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        report = measured(args, Path(folder))
    print(json.dumps(report, indent=1) if args.json else table(report))


def measured(args: argparse.Namespace, work: Path) -> dict:
    make(args, work)
    npy, shards = [work / side for side in ("npy_a", "npy_b")], [work / s for s in ("a", "b")]
    python = str(PEER_VENV / "bin" / "python")
    commands = {
        "msprobe": [python, "-c", PEER, *map(str, npy), str(work / "peer")],
        "npy": crossrank(*npy, work / "from_npy"),
        "shards": crossrank(*shards, work / "from_shards"),
    }
    found = take_turns(commands, args.repeat)
    plain = [run_numpy(*npy) for _ in range(args.repeat)]
    check(work)
    report: dict = {name: {"seconds": m.median, "peak_mb": m.peak_mb} for name, m in found.items()}
    report["numpy"] = {"seconds": statistics.median(plain)}
    report |= {"ranks": args.ranks, "steps": args.steps, "repeat": args.repeat}
    report["size_mb"] = {"msprobe": size(npy[0]) / 2**20, "shards": size(shards[0]) / 2**20}
    report["speedup"] = report["msprobe"]["seconds"] / report["shards"]["seconds"]
    report["speedup_npy"] = report["msprobe"]["seconds"] / report["npy"]["seconds"]
    report["times_numpy"] = report["shards"]["seconds"] / report["numpy"]["seconds"]
    report["size_vs_peer"] = size(shards[0]) / size(npy[0])
    return report


def make(args: argparse.Namespace, work: Path) -> None:
    """Write both runs in both forms."""
    print(f"making {args.ranks} ranks x {args.steps} steps", file=sys.stderr)
    rng = np.random.default_rng(args.seed)
    for step in range(args.steps):
        for rank in range(args.ranks):
            batch = one_batch(rng)
            for side in ("a", "b"):
                here = {(step, rank, 0): batch if side == "a" else with_noise(rng, batch)}
                save(here, work / side, {"rollout_log_prob": "bfloat16"})
                save_npy(as_floats(here), work / f"npy_{side}")


def one_batch(rng: np.random.Generator) -> dict[str, np.ndarray]:
    lengths = rng.integers(50, 1025, 64)
    mask = np.arange(1024) < lengths[:, None]
    log_prob = np.where(mask, -rng.exponential(0.6, (64, 1024)), 0).astype("f4")
    noise = rng.normal(0, 0.01, (64, 1024)) * (1 - np.exp(log_prob))
    return {
        "response_ids": np.where(mask, rng.integers(2, 150_000, (64, 1024)), 0),
        "response_mask": mask,
        "rollout_log_prob": bfloat16(log_prob),
        "old_log_prob": (log_prob + noise * mask).astype("f4"),
        "ref_log_prob": (log_prob + 3 * noise * mask).astype("f4"),
        "advantages": (rng.normal(0, 1, (64, 1)) * mask).astype("f4"),
    }


def with_noise(rng: np.random.Generator, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what another run of the same samples would hold: log-probs that rounding moved."""
    moved = dict(batch)
    for key in ("rollout_log_prob", "old_log_prob", "ref_log_prob"):
        one = floats(batch[key])
        noise = rng.normal(0, 0.003, one.shape) * (1 - np.exp(one)) * batch["response_mask"]
        moved[key] = (
            bfloat16(one + noise) if key == "rollout_log_prob" else (one + noise).astype("f4")
        )
    return moved


def bfloat16(numbers: np.ndarray) -> np.ndarray:
    """Return the upper halves of rounded float32, as two bytes each."""
    return (rounded(numbers).view("<u4") >> 16).astype("<u2")


def floats(numbers: np.ndarray) -> np.ndarray:
    return (numbers.astype("<u4") << 16).view("<f4") if numbers.dtype == "<u2" else numbers


def as_floats(batches: dict) -> dict:
    return {p: {k: floats(v) for k, v in values.items()} for p, values in batches.items()}


def run_numpy(a: Path, b: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", NUMPY, str(a), str(b)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def check(work: Path) -> None:
    """Both answers must be that no more differs than rounding explains."""
    for name in ("from_npy", "from_shards"):
        result = json.loads((work / name / "result.json").read_text())
        assert result["verdict"] == "same", result["findings"]
        assert result["keys"]["old_log_prob"]["n"] > 0


def table(report: dict) -> str:
    lines = [f"{report['ranks']} ranks x {report['steps']} steps, median of {report['repeat']}", ""]
    for name in ("msprobe", "npy", "shards", "numpy"):
        row = report[name]
        ratio = report["msprobe"]["seconds"] / row["seconds"]
        peak = f"{row['peak_mb']:8.0f} MiB" if "peak_mb" in row else ""
        lines.append(f"{name:10}{row['seconds']:8.2f} s{ratio:8.1f}x{peak}")
    lines.append(f"\nshards take {report['size_vs_peer']:.2f} of the bytes; ")
    lines.append(
        f"crossrank takes {report['times_numpy']:.1f} times what loading and subtracting does"
    )
    return "\n".join(lines)


def crossrank(a: Path, b: Path, out: Path) -> list[str]:
    command = [sys.executable, "-m", "pipeline.rl", str(a), str(b)]
    return [*command, "--out", str(out), "--quiet"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="crossrank beside SingleComparator")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder for the data; default: the system's")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
