"""One Excel sheet for each key, as msprobe's SingleComparator writes them, with more columns."""

from __future__ import annotations

import re
from pathlib import Path

from .store import Store

COLUMNS = {
    "step": "step",
    "rank": "rank",
    "micro": "micro_step",
    "id": "id",
    "shape_1": "shape1",
    "shape_2": "shape2",
    "equal": "\u76f8\u540c\u5143\u7d20\u767e\u5206\u6bd4(%)",
    "first": "\u9996\u4e2a\u4e0d\u5339\u914d\u5143\u7d20\u7d22\u5f15",
    "max_abs": "\u6700\u5927\u7edd\u5bf9\u8bef\u5dee",
    "max_rel": "\u6700\u5927\u76f8\u5bf9\u8bef\u5dee",
    "within_3": "\u8bef\u5dee\u5728\u5343\u5206\u4e4b\u4e00\u5185\u5143\u7d20\u5360\u6bd4(%)",
    "within_2": "\u8bef\u5dee\u5728\u767e\u5206\u4e4b\u4e00\u5185\u5143\u7d20\u5360\u6bd4(%)",
    "entry": "entry",
    "nan_1": "NaN 1",
    "nan_2": "NaN 2",
    "dtype_1": "dtype1",
    "dtype_2": "dtype2",
}
"""Column of rl/array_rows -> head of the sheet; the first twelve are msprobe's, in its order."""


def write_sheets(out: Path, store: Store) -> list[Path]:
    """Write {key}.xlsx for each key, as the user of A called it, into `out`; return the files."""
    import polars as pl

    store.answer("rl/array_rows")
    rows = store.con.table("array_rows").pl()
    written = []
    for name in rows["name"].unique(maintain_order=True):
        file = out / f"{file_name(name)}.xlsx"
        temporary = file.with_name(f".{file.name}")
        sheet = rows.filter(pl.col("name") == name).select(
            pl.col(column).alias(head) for column, head in COLUMNS.items()
        )
        sheet.write_excel(temporary, worksheet="Sheet1", autofit=True, freeze_panes=(1, 0))
        temporary.replace(file)
        written.append(file)
    return written


def file_name(name: str) -> str:
    """Return a name that every file system takes."""
    return re.sub(r"[^\w.-]", "_", name)[:100] or "_"
