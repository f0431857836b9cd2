"""How close `crossrank checkpoint` comes to a bare pass that only reads both files and sums them.

    python benchmarks/checkpoint.py --gib 4 --json

Two checkpoints of float32 weights are made (seeded): in one pair every element differs, as one step
of training on; in the other none does. The files are read once, so that they lie in the page cache.
Then crossrank with one worker, with two, and the bare pass with as many threads take turns. Times
are of the pass itself, as each measures it; those of the whole process, with its start, the loading
of compiled loops and the report, stand beside them. The table gives medians, because machines are
noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.analyze import tree_memory

ROOT = Path(__file__).resolve().parent.parent
TENSOR = 2**24
"""Elements of a tensor: 64 MiB."""
HEADER = 2**15
"""Bytes before the first tensor."""

BARE = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np

def total(part):
    path, start, size = part
    return np.memmap(path, np.float32, "r", start, size).sum()

workers, HEADER, *files = sys.argv[1:]
HEADER = int(HEADER)
parts = []
for file in files:
    size = (np.memmap(file, np.uint8, "r").size - HEADER) // 4
    parts += [(file, HEADER + 4 * n, min(2**23, size - n)) for n in range(0, size, 2**23)]
start = time.monotonic()
with ThreadPoolExecutor(int(workers)) as pool:
    sum(pool.map(total, parts))
print(time.monotonic() - start)
"""


def main() -> None:
    args = arguments()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        work = Path(folder)
        files = make(work, round(args.gib * 2**30 / 4 / TENSOR), args.seed)
        report = measured(args, work, files)
    print(json.dumps(report, indent=1) if args.json else table(report))


def make(work: Path, tensors: int, seed: int) -> dict[str, Path]:
    """Write checkpoints a, b (every element another) and c (equal to a) as safetensors."""
    random = np.random.default_rng(seed)
    base = random.standard_normal(TENSOR, dtype=np.float32)
    step = random.standard_normal(TENSOR, dtype=np.float32) * np.float32(1e-3)
    header = {
        f"layers.{n}.weight": {
            "dtype": "F32",
            "shape": [4096, TENSOR // 4096],
            "data_offsets": [4 * TENSOR * n, 4 * TENSOR * (n + 1)],
        }
        for n in range(tensors)
    }
    text = json.dumps(header).encode()
    head = (HEADER - 8).to_bytes(8, "little") + text + b" " * (HEADER - 8 - len(text))
    files = {name: work / f"{name}.safetensors" for name in "abc"}
    for name, file in files.items():
        with open(file, "wb") as target:
            target.write(head)
            for n in range(tensors):
                weights = base * np.float32(1 + n / 64)
                target.write((weights + step if name == "b" else weights).tobytes())
    for file in files.values():  # into the page cache
        np.memmap(file, np.uint8, "r")[::4096].max()
    return files


def measured(args: argparse.Namespace, work: Path, files: dict[str, Path]) -> dict:
    """Return medians and ratios of both pairs."""
    passes: dict[str, list[float]] = {}
    whole: dict[str, list[float]] = {}
    peak = 0.0
    for _ in range(args.repeat):
        for pair, other in (("differ", "b"), ("equal", "c")):
            for workers in (1, 2):
                key = f"{pair}_{workers}"
                bare = [sys.executable, "-c", BARE, workers, HEADER, files["a"], files[other]]
                text, _, _ = run([str(part) for part in bare])
                passes.setdefault(f"bare_{key}", []).append(float(text))
                command = crossrank(files["a"], files[other], work / "out", workers)
                _, seconds, memory = run(command)
                whole.setdefault(key, []).append(seconds)
                passes.setdefault(f"crossrank_{key}", []).append(seconds_of(work / "out", pair))
                peak = max(peak, memory)
    middle = {name: statistics.median(values) for name, values in passes.items()}
    keys = list(whole)
    shares = {key: middle[f"bare_{key}"] / middle[f"crossrank_{key}"] for key in keys}
    return {
        "gib_each": args.gib,
        "repeat": args.repeat,
        "share_of_bare_pass": min(shares.values()),
        "shares": shares,
        "peak_rss_mb": peak,
        "two_worker_speedup": middle["crossrank_differ_1"] / middle["crossrank_differ_2"],
        "bare_two_thread_speedup": middle["bare_differ_1"] / middle["bare_differ_2"],
        "pass_seconds": middle,
        "whole_seconds": {key: statistics.median(values) for key, values in whole.items()},
    }


def crossrank(a: Path, b: Path, out: Path, workers: int) -> list[str]:
    command = [sys.executable, "-m", "pipeline.checkpoint", str(a), str(b), "--quiet"]
    return [*command, "--out", str(out), "--workers", str(workers)]


def run(command: list[str]) -> tuple[str, float, float]:
    """Return output, wall seconds and peak memory in MiB of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, tree_memory(process.pid))
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    assert process.stdout
    return process.stdout.read(), time.perf_counter() - start, peak


def seconds_of(out: Path, pair: str) -> float:
    """Return the seconds of the pass; the answer must be right, or they mean nothing."""
    result = json.loads((out / "result.json").read_text())
    assert result["verdict"] == ("different" if pair == "differ" else "same"), result["verdict"]
    return float(result["read"]["seconds"])


def table(report: dict) -> str:
    lines = [f"two checkpoints of {report['gib_each']} GiB, median of {report['repeat']}", ""]
    lines.append(f"{'':22}{'bare pass':>12}{'crossrank':>12}{'share':>8}{'whole process':>16}")
    for key, share in report["shares"].items():
        bare, ours = (report["pass_seconds"][f"{who}_{key}"] for who in ("bare", "crossrank"))
        whole = report["whole_seconds"][key]
        title = f"{key.replace('_', ', ')} worker{'s' * key.endswith('2')}"
        lines.append(f"{title:22}{bare:10.2f} s{ours:10.2f} s{share:8.0%}{whole:14.2f} s")
    lines.append(f"\npeak memory {report['peak_rss_mb']:.0f} MiB")
    lines.append(f"two workers are {report['two_worker_speedup']:.2f} times as fast as one")
    lines.append(f"two threads of the bare pass: {report['bare_two_thread_speedup']:.2f} times")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="crossrank checkpoint beside a bare pass")
    parser.add_argument("--gib", type=float, default=4, help="size of each checkpoint")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="folder for the files; default: the system's")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    # the cores of this process are those of all that is measured
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
