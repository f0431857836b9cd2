"""The parts that reports share: a table that is searched and sorted, and charts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jinja2
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pipeline.reports import charts, draw, page
from pipeline.reports.charts import Axis, HeatCell, Series
from tests.pipeline.reports.conftest import Open

NAMES = [f"layer.{number}" for number in range(20)]


def a_result(**parts: Any) -> dict[str, Any]:
    read = {"ranks": 1, "expected": 1, "steps": [0], "calls": 1, "tensors": 1}
    empty: dict[str, Any] = {"origins": [], "ranks": [], "benign": [], "warnings": []}
    top = {"tool": "analyze", "schema": 1, "dump": "d", "verdict": "clean", "read": read}
    return top | empty | parts


def macro(file: str, name: str, *values: Any) -> str:
    module = page._environment().get_template(file).module
    return str(getattr(module, name)(*values))


def rows(browser: Chrome) -> list[str]:
    found = browser.find_elements(By.CSS_SELECTOR, "#benign-rows tbody tr")
    cells = [row.find_elements(By.TAG_NAME, "td") for row in found if row.is_displayed()]
    return [cell[2].text for cell in cells]


@pytest.fixture
def table(open_page: Open, tmp_path: Path) -> Chrome:
    ranks = [number * 7 % 20 for number in range(20)]
    benign = [
        {"step": 0, "rank": rank, "call": name, "reason": "mask <b>"}
        for rank, name in zip(ranks, NAMES, strict=True)
    ]
    return open_page(draw(a_result(benign=benign), tmp_path))


def test_a_table_is_searched(table: Chrome) -> None:
    field = table.find_element(By.CSS_SELECTOR, "input[data-searches=benign-rows]")
    field.send_keys("LAYER.1 mask")
    assert rows(table) == [name for name in NAMES if name.startswith("layer.1")]
    assert table.find_element(By.CSS_SELECTOR, "#benign .hits").text == "11 rows"
    field.send_keys(" nowhere")
    assert rows(table) == []
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.DELETE)
    assert rows(table) == NAMES


def test_a_table_is_sorted_by_numbers(table: Chrome) -> None:
    heading = table.find_elements(By.CSS_SELECTOR, "#benign-rows th")[1]
    heading.click()
    assert rows(table)[:3] == ["layer.0", "layer.3", "layer.6"]
    heading.send_keys(Keys.ENTER)
    assert heading.get_attribute("aria-sort") == "descending"
    assert rows(table)[-3:] == ["layer.6", "layer.3", "layer.0"]


def test_a_short_table_has_no_search(open_page: Open, tmp_path: Path) -> None:
    benign = [{"step": 0, "rank": 0, "call": "a", "reason": "b"}]
    browser = open_page(draw(a_result(benign=benign), tmp_path))
    assert rows(browser) == ["a"]
    assert browser.find_elements(By.CSS_SELECTOR, "input[type=search]") == []


def test_a_line_breaks_where_a_value_has_no_place() -> None:
    line = Series("gap", [(0, 1.0), (1, math.nan), (2, 2.0), (3, 0.0), (4, 4.0)])
    linear, log = (charts.line_chart([line], x_label="x", y_label="y", log=on) for on in (0, 1))
    assert linear["series"][0]["path"].count("M") == 2
    assert log["series"][0]["path"].count("M") == 3
    assert [text for _, text in log["x_ticks"]] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("values", [[], [math.nan], [3.0], [0.0, 0.0], [-1e300, 1e300]])
@pytest.mark.parametrize("log", [False, True])
def test_an_axis_holds_any_values(values: list[float], log: bool) -> None:
    axis = Axis.over(values, 0, 100, log=log)
    assert all(0 <= axis.place(value) <= 100 for value in values if axis.shows(value))
    assert len(axis.ticks()) <= 8


def test_bars_stand_on_the_floor() -> None:
    chart = charts.bar_chart([("a", 0), ("b", 5), ("c", 10)], x_label="x", y_label="n")
    heights = [bar["height"] for bar in chart["bars"]]
    assert heights[0] == 0
    assert heights[2] == pytest.approx(2 * heights[1], abs=0.2)
    assert all(bar["y"] + bar["height"] == chart["floor"] for bar in chart["bars"])


def test_charts_are_drawn(open_page: Open) -> None:
    name = "<img src=x>"
    line = Series(name, [(0, 1.0), (1, 10.0)], band=[(0, 0.5, 2.0), (1, 5.0, 20.0)], tone=1)
    cells = [HeatCell(0.0), HeatCell(1.0, "1", tip=name, link="here"), HeatCell(None)]
    style, _, _ = page._environment().loader.get_source(page._environment(), "page.css")  # type: ignore[union-attr]
    views = {
        "line_chart": charts.line_chart([line], x_label="x", y_label="y"),
        "bar_chart": charts.bar_chart([(name, 3)], x_label="x", y_label="y"),
        "heat_map": charts.heat_map(["a", "b", "c"], [(name, cells)]),
    }
    drawn = [macro("charts.html", kind, view, kind) for kind, view in views.items()]
    browser = open_page(f"<!DOCTYPE html><style>{style}</style>{''.join(drawn)}")
    assert browser.find_elements(By.TAG_NAME, "img") == []
    assert len(browser.find_elements(By.CSS_SELECTOR, ".spot")) == 2
    assert len(browser.find_elements(By.CSS_SELECTOR, ".bar")) == 1
    none, worst, unknown = browser.find_elements(By.CSS_SELECTOR, ".heat tbody td")
    assert none.value_of_css_property("background") != worst.value_of_css_property("background")
    assert "unknown" in str(unknown.get_attribute("class"))
    assert worst.find_element(By.TAG_NAME, "a").get_attribute("href").endswith("#here")


def test_a_template_names_what_it_lacks() -> None:
    with pytest.raises(jinja2.UndefinedError):
        macro("charts.html", "heat_map", {}, "nothing")
