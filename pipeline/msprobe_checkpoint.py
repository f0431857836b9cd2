"""The checkpoint comparison of msprobe under our name, with its flags and its output file.

crossrank -f pytorch config_check --compare CKPT1 CKPT2 -o X.json
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import UsageError
from .output import strict_json
from .settings import limits

DEFAULT = Path("./ckpt_similarity.json")


def compare_checkpoints_as_msprobe(args: Namespace) -> int:
    """Write name -> `l2`, `cos`, `numel`, `shape` of every tensor that both have.

    Tensors of other shapes have both numels and shapes, and no numbers; what one side alone has is
    told on stderr. The exit code is 2 when a file could not be read.

    Raises:
        UsageError: the output file is there already.
    """
    out: Path = args.output or DEFAULT
    if out.exists():
        raise UsageError(f"{out} exists already; give another file with -o")
    from .checkpoint_compare import Question, compare_checkpoints

    question = Question(args.compare[0], args.compare[1], every=True)
    with compare_checkpoints(question, limits(1)) as (result, _):
        rows = dict(_rows(result["findings"]))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(strict_json(rows))
    for finding in result["findings"]:
        if finding["status"] in ("only_in_a", "only_in_b"):
            side = args.compare[finding["status"] == "only_in_b"]
            print(f"{finding['name']} is only in {side}", file=sys.stderr)
    broken = [w["text"] for w in result["warnings"] if w["code"].startswith("file_")]
    for text in broken:
        print(f"crossrank: {text}", file=sys.stderr)
    print(f"The comparison of the checkpoints is saved in: {out}")
    return 2 if broken else 0


def _rows(findings: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, dict[str, Any]]]:
    for finding in findings:
        if finding["kind"] != "weight" or finding["status"] in ("only_in_a", "only_in_b"):
            continue
        if "numel" in finding:
            yield finding["name"], {key: finding[key] for key in ("l2", "cos", "numel", "shape")}
        elif None not in finding["shape"]:
            numels = [_numel(shape) for shape in finding["shape"]]
            row = {"l2": None, "cos": None, "numel": numels, "shape": finding["shape"]}
            yield finding["name"], row


def _numel(shape: Iterable[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size
