"""What the documents show is what happens: commands, links, columns."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.schema import CALLS, ROLLOUTS, TENSORS
from pipeline.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def shown() -> Iterator[tuple[str, str]]:
    """Yield each command over a bundled dump, with what the page shows below it."""
    for page in PAGES:
        for block in blocks(page, "console"):
            for entry in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, output = entry.partition("\n")
                if command.startswith("crossrank ") and "examples/" in command:
                    yield command, output


@pytest.mark.parametrize(("command", "output"), list(shown()))
def test_commands_give_what_is_shown(
    command: str, output: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.startswith(output.split("   ...")[0])


def test_commands_are_shown() -> None:
    assert len(list(shown())) >= 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_targets_exist(page: Path) -> None:
    text = page.read_text()
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"\bmake (\w+)`", text)) <= set(targets)
    assert set(re.findall(r"crossrank (\w+) [A-Z]", text)) <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configurations_are_json(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block)


def test_a_job_brings_what_the_analysis_needs() -> None:
    (brought,) = re.findall(r'"pip": (\[.*?\])\}', (ROOT / "docs" / "cluster.md").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    needs = re.findall(r"^(?:dependencies|pipeline) = (\[.*\])", project, re.M)
    needed = {need for row in needs for need in json.loads(row) if not need.startswith("ray[")}
    assert set(json.loads(brought)) == needed


def test_shards_page_has_every_column() -> None:
    text = (ROOT / "docs" / "shards.md").read_text()
    for table, schema in (("calls", CALLS), ("tensors", TENSORS), ("rollout", ROLLOUTS)):
        section = text.partition(f"## {table}\n")[2].partition("\n## ")[0]
        cells = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
        assert re.findall(r"`(\w+)`", " ".join(cells)) != []
        assert set(re.findall(r"`(\w+)`", " ".join(cells))) == set(schema.names)
