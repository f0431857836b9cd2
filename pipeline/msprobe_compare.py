"""`crossrank -f pytorch compare`: msprobe's comparison under our name, with its files.

crossrank -f pytorch compare -i compare.json -o DIR -s
"""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from .compare import MAPPINGS
from .comparison import Comparison, counterparts, framework, renamed_names
from .errors import UsageError
from .pairing import load_pair
from .settings import limits
from .shards import open_dump
from .spreadsheet import colours, spreadsheet, write_xlsx
from .store import Store

SIDES = ("npu_path", "bench_path")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command line of msprobe."""
    parser.add_argument(
        "-i", "--input_path", type=Path, required=True, help="compare.json: npu_path, bench_path"
    )
    parser.add_argument("-o", "--output_path", type=Path, default=Path("output"), help="a folder")
    parser.add_argument("-s", "--stack_mode", action="store_true", help="add the call stacks")
    for kind in MAPPINGS:
        parser.add_argument(f"-{kind[0]}m", f"--{kind}_mapping", type=Path, help="YAML")
    parser.add_argument("--xlsx", action="store_true", help="a spreadsheet with coloured rows")
    # what msprobe has switches for is always done: calls are aligned, and judged in the report
    parser.add_argument("-c", "--compare_only", action="store_true", help="accepted")
    parser.add_argument("-f", "--fuzzy_match", action="store_true", help="accepted")


def run(args: Namespace) -> int:
    """Write `compare_result_rank<R>_<time>.csv` or `.xlsx` for each rank; return the exit code."""
    paths = _paths(args.input_path)
    target, bench = (open_dump(paths[side]) for side in SIDES)
    renamed = renamed_names({kind: getattr(args, f"{kind}_mapping") for kind in MAPPINGS})
    comparison = Comparison(bench, target, (), False, counterparts(bench, target), renamed)
    args.output_path.mkdir(parents=True, exist_ok=True)
    several = len({shard.rank for shard in target.shards}) > 1
    stamp = time.strftime("%Y%m%d%H%M%S")
    share = limits(1)
    for task in comparison.tasks(share, comparison.params):
        with Store(share, task.params) as store:
            load_pair(store, task)
            store.answer("diff/spreadsheet")
            rows = store.con.table("spreadsheet").pl()
        rank = f"_rank{task.target.shards[0].rank}" if several else ""
        file = args.output_path / f"compare_result{rank}_{stamp}.{'xlsx' if args.xlsx else 'csv'}"
        table = spreadsheet(
            _spelled(rows, framework(target), framework(bench)), stacks=args.stack_mode
        )
        if args.xlsx:
            write_xlsx(table, colours(rows), file)
        else:
            table.write_csv(file)
        print(f"The compare result is saved in: {file}")
    return 0


def _paths(file: Path) -> dict[str, Path]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(content.get(k), str) for k in SIDES):
        raise UsageError(f"{file} must have npu_path and bench_path: two dumps or their dump.json")
    return {side: Path(content[side]) for side in SIDES}


def _spelled(rows: Any, target: str, bench: str) -> Any:
    """Return the rows with dtypes as the frameworks spell them: torch.float32, Float32."""
    import polars as pl

    def spelled(column: str, made_by: str) -> Any:
        plain = pl.col(column)
        text = pl.concat_str(pl.lit("torch."), plain)
        if made_by == "mindspore":
            text = plain.str.to_titlecase().str.replace("Bfloat", "BFloat")
        return pl.when(plain.str.starts_with("<")).then(plain).otherwise(text).alias(column)

    return rows.with_columns(spelled("dtype", target), spelled("bench_dtype", bench))
