"""The report of compare in a real browser."""

from __future__ import annotations

import tarfile
from pathlib import Path

from pipeline.cli import main

from ...conftest import DATA
from ...dumps import Run, Value


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_the_answer_is_there(tmp_path: Path, browser) -> None:
    out = tmp_path / "out"
    with tarfile.open(DATA / "compare" / "B04_extra_api_L1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    run("compare", tmp_path / "bench", tmp_path / "target", "--out", out, "--quiet")
    browser.get(f"file://{out}/report.html")
    by_id = {part: browser.find_element("id", part) for part in ("answer", "parting", "findings")}
    assert "Functional.gelu.1.forward" in by_id["answer"].text
    assert "Tensor.__add__.3.forward, an operation that only one run has" in by_id["parting"].text
    assert "suspect" in by_id["findings"].text
    assert browser.find_element("css selector", "#modules table.heat td.tip")
    assert browser.find_element("css selector", "#profile svg path.line")
    assert [e for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


def test_hostile_names_do_not_run_and_the_report_is_ascii(tmp_path, browser) -> None:
    name = "Torch.<img src=x onerror=document.title='gone'>\u202e.0.forward"
    dumps = []
    for side, top in (("bench", 1.0), ("target", 2.0)):
        shards = Run(tmp_path / side)
        shards.rank(0).call(name, [Value()], [Value(max=top)])
        dumps.append(shards.write())
    run("compare", *dumps, "--out", tmp_path / "out", "--quiet")
    assert (tmp_path / "out" / "report.html").read_text().isascii()
    browser.get(f"file://{tmp_path}/out/report.html")
    assert "gone" not in browser.title
    assert browser.find_elements("tag name", "img") == []
