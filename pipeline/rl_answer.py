"""Samples that are listed, measured and judged; the result written and told."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable
from concurrent.futures import Executor

from .engine import Engine
from .engine_local import LocalEngine
from .options import out_folder, share
from .output import ResultFolder, exit_code, strict_json
from .render_rl import rl_text
from .rl_analysis import judge_collections, measure_collections, rl_store
from .rl_sheets import sheet_files, sheet_rows
from .rl_tasks import Sides, Tables


def answer(
    args: Namespace, sides: Sides, listed: Iterable[Tables], engine: Engine, beside: Executor
) -> int:
    """Compare two collections and write the result; return the exit code of the command.

    Args:
        args: of the command line.
        sides: what is compared.
        listed: their samples and keys.
        engine: runs the tasks.
        beside: makes the sheets while questions are answered.
    """
    out = out_folder(args)
    statements: list[str] = []
    explain = statements.append if args.explain else None
    with rl_store(share(args, 1), explain) as store, ResultFolder(out, store) as folder:
        setting = measure_collections(sides, listed, store, engine)
        if args.explain:
            judge_collections(sides, setting, store, engine)
            sys.stdout.write("\n".join(statements))
            return 0
        here = engine if isinstance(engine, LocalEngine) else LocalEngine(1)
        sheets = beside.submit(sheet_files, sheet_rows(store), here)
        result = judge_collections(sides, setting, store, engine)
        folder.write(result, sheets.result)
    sys.stdout.write(strict_json(result) + "\n" if args.json else rl_text(result, out))
    return exit_code(_as_found(result["verdict"]), args.fail_on)


def _as_found(verdict: str) -> str:
    return "found" if verdict == "different" else verdict
