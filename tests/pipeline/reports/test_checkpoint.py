"""The report of `checkpoint` in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from pipeline.checkpoint_compare import Question, compare_checkpoints
from pipeline.output import ResultFolder
from pipeline.reports import draw
from pipeline.settings import limits
from tests.pipeline.reports.conftest import Open

HOSTILE = "<script>alert(1)</script>\"'></td>\u202eevil"


def result_of(tmp_path: Path, a: dict[str, Any], b: dict[str, Any]) -> tuple[Any, Path]:
    torch.save(a, tmp_path / "a.pt")
    torch.save(b, tmp_path / "b.pt")
    question = Question(tmp_path / "a.pt", tmp_path / "b.pt")
    with (
        compare_checkpoints(question, limits(1)) as (result, store),
        ResultFolder(tmp_path / "out", store) as folder,
    ):
        folder.write(result)
    return result, tmp_path / "out"


@pytest.fixture
def page(open_page: Open, tmp_path: Path) -> Chrome:
    torch.manual_seed(0)
    a = {f"layers.{n}.mlp.{k}.weight": torch.randn(8, 8) for n in range(16) for k in ("up", "down")}
    b = {name: weight.clone() for name, weight in a.items()}
    b["layers.3.mlp.up.weight"] += 0.5
    b["layers.7.mlp.down.weight"][2, 5] += 1e-3
    b["layers.5.mlp.up.weight"].neg_()
    a[HOSTILE] = torch.ones(2)
    _, folder = result_of(tmp_path, a, b)
    return open_page((folder / "report.html").read_text(encoding="ascii"))


def texts(page: Chrome, selector: str) -> list[str]:
    return [e.text for e in page.find_elements(By.CSS_SELECTOR, selector)]


def test_answer_and_facts(page: Chrome) -> None:
    assert texts(page, ".verdict") == ["DIFFERENT"] or texts(page, ".verdict") == ["different"]
    (headline,) = texts(page, "h1")
    assert headline.startswith("Different: 3 tensors differ, 1 tensor on one side only")
    assert "layers.5.mlp.up.weight (the sign is flipped)" in headline


def test_heat_map(page: Chrome) -> None:
    rows = page.find_elements(By.CSS_SELECTOR, "#layers tbody tr")
    assert [row.find_element(By.TAG_NAME, "th").text for row in rows] == [
        "mlp.down.weight",
        "mlp.up.weight",
    ]
    shares = [
        int(cell.get_attribute("style").split("--share:")[1].strip(" %;"))
        for cell in rows[1].find_elements(By.TAG_NAME, "td")
    ]
    assert [n for n, share in enumerate(shares) if share] == [3, 5]
    tip = rows[1].find_elements(By.TAG_NAME, "td")[3].get_attribute("data-tip") or rows[
        1
    ].find_elements(By.TAG_NAME, "td")[3].get_attribute("title")
    assert "layer 3, mlp.up.weight" in str(tip)


def test_table_of_findings(page: Chrome) -> None:
    rows = texts(page, "#findings-rows tbody tr")
    assert len(rows) == 4
    assert "layers.5.mlp.up.weight" in rows[0]
    assert "[2, 5]" in rows[2]


def test_histogram_of_the_worst(page: Chrome) -> None:
    assert len(page.find_elements(By.CSS_SELECTOR, "#worst rect")) > 2
    assert "layers.5.mlp.up.weight: 64 of 64 elements differ" in texts(page, "#worst .lead")[0]


def test_names_stay_text(page: Chrome) -> None:
    assert page.execute_script("return document.scripts.length") == 1
    assert any("<script>alert(1)</script>" in row for row in texts(page, "#findings-rows tr"))
    assert "\u202e" not in page.page_source


def test_the_same_checkpoints(open_page: Open, tmp_path: Path) -> None:
    weights = {"w": torch.ones(2, 2)}
    result, folder = result_of(tmp_path, weights, weights)
    page = open_page(draw(result, folder))
    assert texts(page, "h1") == ["The same weights: 1 tensor."]
    assert not page.find_elements(By.ID, "layers")
    assert not page.find_elements(By.ID, "worst")


def test_search_in_many_findings(open_page: Open, tmp_path: Path) -> None:
    a = {f"layers.{n}.w": torch.zeros(2) for n in range(40)}
    result, folder = result_of(tmp_path, a, {name: w + 1 for name, w in a.items()})
    page = open_page(draw(result, folder))
    field = page.find_element(By.CSS_SELECTOR, "input[data-searches='findings-rows']")
    field.send_keys("layers.17.")
    shown = [
        row
        for row in page.find_elements(By.CSS_SELECTOR, "#findings-rows tbody tr")
        if row.is_displayed()
    ]
    assert [row.find_element(By.TAG_NAME, "code").text for row in shown] == ["layers.17.w"]
