"""A real browser that opens pages from disk and asks nobody else for anything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking --disable-component-update --disable-sync --window-size=1280,900"""

Open = Callable[[str], Chrome]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = program("chromium")
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options, Service(program("chromedriver")))
    driver.get("about:blank")
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser: Chrome, tmp_path: Path) -> Open:
    """Open a page; nothing but the file itself may be asked for."""

    def opened(page: str) -> Chrome:
        file = tmp_path / "report.html"
        file.write_text(page, encoding="ascii")
        browser.get_log("performance")
        browser.get(file.as_uri())
        assert requests(browser) == [file.as_uri()]
        assert not browser.execute_script("return performance.getEntriesByType('resource').length")
        assert browser.get_log("browser") == []
        return browser

    return opened


def program(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is not installed; the report is tested in a real browser"
    return path


def requests(browser: Chrome) -> list[str]:
    """Return what was asked for since the last call, without what the browser's own pages do."""
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"].endswith("BeSent")]
    return [url for url in urls if not url.startswith(("data:", "chrome:"))]
