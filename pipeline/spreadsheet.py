"""Pairs of tensors as msprobe's table: its columns, its formulas, its verdicts, its colours.

The formulas and thresholds are those of msprobe 26.2 (columns, Result, Err_message) and 8.3.2
(colours of rows). They are an export for scripts and habits; what crossrank says itself does not
rest on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from .spreadsheet_rules import CALL, judged

if TYPE_CHECKING:
    from xlsxwriter.format import Format

STATISTICS = ("max", "min", "mean", "norm")
TITLES = {"max": "Max", "min": "Min", "mean": "Mean", "norm": "L2norm"}
HEAD = {
    "name": "NPU Name",
    "bench_name": "Bench Name",
    "dtype": "NPU Dtype",
    "bench_dtype": "Bench Dtype",
    "shape": "NPU Tensor Shape",
    "bench_shape": "Bench Tensor Shape",
    "requires_grad": "NPU Requires_grad",
    "bench_requires_grad": "Bench Requires_grad",
}
NUMBERS = {
    **{key: f"NPU {'l2norm' if key == 'norm' else key}" for key in STATISTICS},
    **{f"bench_{key}": f"Bench {'l2norm' if key == 'norm' else key}" for key in STATISTICS},
}
VERDICT = {
    "consistent": "Requires_grad Consistent",
    "result": "Result",
    "messages": "Err_message",
}
COLUMNS = {
    "statistics": {
        **HEAD,
        **{f"{key}_diff": f"{TITLES[key]} diff" for key in STATISTICS},
        **{
            f"{key}_rel": f"{'Norm' if key == 'norm' else TITLES[key]}RelativeErr"
            for key in STATISTICS
        },
        **NUMBERS,
        **VERDICT,
    },
    "tensor": {
        **HEAD,
        "cosine": "Cosine",
        "euclid": "EucDist",
        "max_abs": "MaxAbsErr",
        "max_element_rel": "MaxRelativeErr",
        "thousandth": "One Thousandth Err Ratio",
        "five_thousandths": "Five Thousandths Err Ratio",
        **NUMBERS,
        **VERDICT,
    },
    "md5": {**HEAD, "checksum": "NPU MD5", "bench_checksum": "BENCH MD5", **VERDICT},
}
"""Mode -> column here -> its title there, in order."""

MOST_COLOURED = 1_048_500
MISSING = "N/A"


def mode_of(rows: pl.DataFrame) -> str:
    """Return what is compared: real tensors, checksums on both sides, or statistics."""
    if rows["cosine"].count() or rows["max_abs"].count():
        return "tensor"
    return "md5" if rows["checksum"].count() and rows["bench_checksum"].count() else "statistics"


def spreadsheet(rows: pl.DataFrame, *, stacks: bool) -> pl.DataFrame:
    """Return the table with msprobe's titles; every cell is text.

    Args:
        rows: of diff/spreadsheet.
        stacks: add the call stack, in the first row of each call.
    """
    mode = mode_of(rows)
    table = judged(_differences(rows), mode)
    columns = dict(COLUMNS[mode])
    if stacks:
        columns["stack_info"] = "NPU_Stack_Info"
    if mode == "tensor":
        columns["data_name"] = "Data_name"
    return table.select(
        pl.col(key).cast(pl.String).fill_null(MISSING).alias(title)
        for key, title in columns.items()
    )


def _differences(rows: pl.DataFrame) -> pl.DataFrame:
    columns = []
    for key in STATISTICS:
        npu, bench = pl.col(key), pl.col(f"bench_{key}")
        a, b = npu.cast(pl.Float64, strict=False), bench.cast(pl.Float64, strict=False)
        same, numbers = npu == bench, a.is_not_null() & b.is_not_null()
        relative = ((a - b) / b).abs() * 100
        columns += [
            pl.when(same).then(pl.lit("0")).when(a.is_nan() | b.is_nan()).then(pl.lit("Nan"))
            .when(numbers).then((a - b).cast(pl.String))
            .when(npu.is_not_null() & bench.is_not_null()).then(pl.lit("Diff"))
            .alias(f"{key}_diff"),
            pl.when(same).then(pl.lit("0")).when(a.is_nan() | b.is_nan()).then(pl.lit("Nan"))
            .when(b == 0).then(pl.lit("inf"))
            .when(numbers).then(pl.concat_str(relative.cast(pl.String), pl.lit("%")))
            .when(npu.is_not_null() & bench.is_not_null()).then(pl.lit("Diff"))
            .alias(f"{key}_rel"),
            pl.when(same).then(0.0).when(b == 0).then(None).otherwise(relative / 100)
            .alias(f"{key}_error"),
        ]  # fmt: skip
    frames = (
        pl.col("stack")
        .str.split("\n")
        .list.eval(pl.concat_str(pl.lit("'"), pl.element(), pl.lit("'")))
    )
    return rows.with_columns(
        *columns,
        pl.when((pl.col("requires_grad") != pl.col("bench_requires_grad")).fill_null(False))
        .then(pl.lit("False"))
        .otherwise(pl.lit("True"))
        .alias("consistent"),
        pl.when(pl.col("place") == 0)
        .then(pl.concat_str(pl.lit("["), frames.list.join(", "), pl.lit("]")))
        .alias("stack_info"),
        pl.concat_str(
            pl.lit("['"),
            _file("value_path"),
            pl.lit("', '"),
            _file("bench_value_path"),
            pl.lit("']"),
        ).alias("data_name"),
        *(
            pl.when(pl.col(key))
            .then(pl.lit("True"))
            .when(~pl.col(key))
            .then(pl.lit("False"))
            .alias(key)
            for key in ("requires_grad", "bench_requires_grad")
        ),
    )


def _file(column: str) -> pl.Expr:
    return pl.col(column).str.split("/").list.last()


def colours(rows: pl.DataFrame) -> list[str | None]:
    """Return red, yellow or None for each row, by the rules of msprobe 8.3.2; red wins."""
    rows = _differences(rows)
    mode = mode_of(rows)
    if mode == "md5" or len(rows) > MOST_COLOURED:
        return [None] * len(rows)
    read = ~pl.col("output")
    off = (
        pl.col("max").cast(pl.Float64, strict=False)
        - pl.col("bench_max").cast(pl.Float64, strict=False)
    ).abs()
    off = pl.col("max_abs") if mode == "tensor" else off
    error = pl.col("max_error")
    read_error, read_off = (e.filter(read).min().over(CALL).fill_null(0) for e in (error, off))
    red = pl.col("max").is_in(["nan", "inf"]) | pl.col("min").is_in(["nan", "-inf"]) | (off > 1e10)
    yellow = pl.col("output") & (off > 1) & (read_off > 1) & (off >= 10 * read_off)
    yellow |= pl.col("requires_grad") != pl.col("bench_requires_grad")
    if mode == "tensor":
        best = {key: pl.col(key).filter(read).max().over(CALL) for key in ("thousandth", "cosine")}
        red |= pl.col("output") & (best["thousandth"] > 0.9) & (pl.col("thousandth") < 0.6)
        for key in best:
            yellow |= pl.col("output") & (best[key] - pl.col(key) > 0.1)
    else:
        red |= pl.col("output") & (error > 0.5)
        yellow |= pl.col("output") & (error > 0.1) & (read_error < 0.01)
    tone = pl.when(red.fill_null(False)).then(pl.lit("red")).when(yellow.fill_null(False))
    return rows.select(tone.then(pl.lit("yellow")).alias("tone"))["tone"].to_list()


def write_xlsx(table: pl.DataFrame, tones: Sequence[str | None], file: Path) -> None:
    """Write a table as a spreadsheet with its rows coloured; a cell is never a formula."""
    import xlsxwriter

    options = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with xlsxwriter.Workbook(file, options) as book:
        sheet = book.add_worksheet("Sheet1")
        table.write_excel(
            book, sheet, table_style=None, autofilter=False, header_format={"bold": True}
        )
        fills: dict[str, Format] = {
            "red": book.add_format({"bg_color": "#FF0000"}),
            "yellow": book.add_format({"bg_color": "#FFFF00"}),
        }
        last = len(table.columns) - 1
        for row, tone in enumerate(tones, 1):
            if tone:
                rule: dict[str, Any] = {"type": "no_errors", "format": fills[tone]}
                sheet.conditional_format(row, 0, row, last, rule)
