"""One Excel sheet for each key, as msprobe's SingleComparator writes them, with more columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from .engine import Engine, Failure, reason_of
from .errors import InternalError

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

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

OPTIONS = {
    "in_memory": True,
    "nan_inf_to_errors": True,
    "strings_to_formulas": False,
    "strings_to_urls": False,
}
"""Names that users gave stay texts."""

PAGE_ROWS = 2**20 - 1
"""Rows of a page besides its head: what Excel opens."""

Sheets = Mapping[str, Sequence[Sequence[Any]]]
"""Key, as the user of A called it -> rows."""


def sheet_rows(store: Store) -> Sheets:
    """Return what stands in the sheets, in the order of the columns."""
    found: dict[str, list[Sequence[Any]]] = {}
    for row in store.rows("rl/array_rows"):
        found.setdefault(row["name"], []).append([row[column] for column in COLUMNS])
    return found


def sheet_files(sheets: Sheets, engine: Engine) -> dict[str, bytes]:
    """Return {key}.xlsx -> its content for each key."""
    files = {}
    for (name, _), content in engine.map(sheet, sheets.items()):
        if isinstance(content, Failure):
            raise InternalError(f"the sheet of {name} was not made: {reason_of(content)}")
        files[f"{file_name(name)}.xlsx"] = content
    return files


def sheet(named: tuple[str, Sequence[Sequence[Any]]]) -> bytes:
    """Return the Excel file of a key and its rows; runs in a worker."""
    import xlsxwriter

    _, rows = named
    file = BytesIO()
    with xlsxwriter.Workbook(file, OPTIONS) as book:
        bold = book.add_format({"bold": True})
        for number, start in enumerate(range(0, len(rows), PAGE_ROWS), 1):
            _page(book.add_worksheet(f"Sheet{number}"), rows[start : start + PAGE_ROWS], bold)
    return file.getvalue()


def _page(page: Worksheet, rows: Sequence[Sequence[Any]], bold: Format) -> None:
    page.write_row(0, 0, COLUMNS.values(), bold)
    for number, row in enumerate(rows, 1):
        page.write_row(number, 0, row)
    page.freeze_panes(1, 0)
    page.autofilter(0, 0, len(rows), len(COLUMNS) - 1)
    page.autofit()


def file_name(name: str) -> str:
    """Return a name that every file system takes."""
    return re.sub(r"[^\w.-]", "_", name)[:100] or "_"
