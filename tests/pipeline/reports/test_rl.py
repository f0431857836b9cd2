"""The report of `rl` in a real browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver.common.by import By

from pipeline.cli import main

from ...rollouts import Rollouts, save

HOSTILE = '<img src=x onerror="document.title=1">\u202e'


@pytest.fixture
def report(tmp_path: Path):
    def made(temperature: float = 1.0, **keys: object) -> str:
        run = Rollouts(steps=3)
        a, b = run.engine(), run.trainer(temperature)
        for side in (a, b):
            for values in side.values():
                values |= keys
        sides = [str(save(one, tmp_path / name)) for one, name in ((a, "a"), (b, "b"))]
        assert main(["rl", *sides, "--out", str(tmp_path / "o"), "--quiet"]) == 0
        return (tmp_path / "o" / "report.html").read_text(encoding="ascii")

    return made


def test_answer_findings_trend_and_samples(open_page, report) -> None:
    page = open_page(report())
    assert page.find_element(By.CSS_SELECTOR, ".verdict").text.lower() == "different"
    assert "temperature in log_prob" in page.find_element(By.TAG_NAME, "h1").text
    assert page.find_element(By.CSS_SELECTOR, "#findings h3").text.startswith("1. temperature")
    assert len(page.find_elements(By.CSS_SELECTOR, "#trend svg path.line")) == 3
    assert page.find_elements(By.CSS_SELECTOR, "#worst-rows tbody tr")
    assert page.find_elements(By.CSS_SELECTOR, "#keys-rows tbody tr")


def test_the_darkest_token_is_the_worst(open_page, report) -> None:
    page = open_page(report())
    first = page.find_element(By.CSS_SELECTOR, "#tokens .tokens[aria-label=response]")
    shares = [
        float(token.get_attribute("style").split(":")[1].strip(" %;"))
        for token in first.find_elements(By.CSS_SELECTOR, ".gap")
    ]
    row = page.find_element(By.CSS_SELECTOR, "#worst-rows tbody tr")
    worst_at = int(row.find_elements(By.TAG_NAME, "td")[9].text)
    assert max(shares) == 100
    assert shares.index(100) == worst_at


def test_a_healthy_run_has_no_findings(open_page, report) -> None:
    page = open_page(report(0.7))
    assert page.find_element(By.CSS_SELECTOR, ".verdict").text.lower() == "same"
    assert not page.find_elements(By.ID, "findings")


def test_hostile_names_cannot_inject(open_page, report) -> None:
    page = open_page(report(**{HOSTILE: np.zeros(4)}))
    assert page.title != "1"
    assert not page.find_elements(By.CSS_SELECTOR, "img")


def test_drawn_again(report, tmp_path: Path) -> None:
    page = report()
    (tmp_path / "o" / "report.html").unlink()
    assert main(["report", str(tmp_path / "o")]) == 0
    assert (tmp_path / "o" / "report.html").read_text() == page
