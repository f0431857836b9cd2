"""Who may import whom, and the names and sizes that keep the code readable."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("collectors", "analyzers", "pipeline")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
STANDARD = set(sys.stdlib_module_names)

MAY = {
    "collectors": {"pyarrow", "torch"},
    "analyzers": set(),
    "pipeline/readers": {"pyarrow", "numpy", "ml_dtypes", "yaml", "jiter", "collectors"},
    "pipeline": {
        *("pyarrow", "duckdb", "jinja2", "ml_dtypes", "numba", "numpy", "polars", "ray"),
        *("tqdm", "xlsxwriter"),
        *("collectors", "analyzers", "pipeline"),
    },
}
FROM_COLLECTORS = {"schema", "layout", "errors", "parts"}
"""What the pipeline may take of the collectors: what files look like, not how they are filled."""

ONLY = {
    "ray": {"pipeline/engine_ray.py"},
    "analyzers": {
        *("pipeline/analysis.py", "pipeline/checkpoint_compare.py"),
        *("pipeline/comparison.py", "pipeline/rl_analysis.py"),
    },
    "jinja2": {"pipeline/reports/page.py"},
    "numba": {"pipeline/difference_fused.py"},
    "pipeline": {"pipeline/command.py"},
}
"""Module -> the only files that import it."""

SILENT_NAMES = {
    "utils",
    "util",
    "common",
    "helpers",
    "helper",
    "misc",
    "const",
    "constants",
    "manager",
}


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, level) of every import in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.level


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_imports(path: Path) -> None:
    name = ids(path)
    room = "pipeline/readers" if name.startswith("pipeline/readers") else name.partition("/")[0]
    for module, level in imports(path):
        top = module.partition(".")[0]
        if level:
            depth = len(path.relative_to(ROOT / room.partition("/")[0]).parts)
            assert level <= depth, f"{name}: a relative import leaves its room"
            continue
        assert top in STANDARD | MAY[room], f"{name} imports {module}"
        if top == "collectors":
            assert module.split(".")[1] in FROM_COLLECTORS, f"{name} imports {module}"
        if top == "torch":
            own = path.name.startswith("torch_") or name == "collectors/debugger.py"
            assert own, f"{name} imports {module}"
        if top in ONLY:
            assert name in ONLY[top], f"{name} imports {module}"


def test_readers_import_nothing_else_of_the_pipeline() -> None:
    for path in (ROOT / "pipeline/readers").rglob("*.py"):
        depth = len(path.relative_to(ROOT / "pipeline/readers").parts)
        for module, level in imports(path):
            assert level <= depth, f"{ids(path)} imports {module} from above the readers"


def test_training_side_needs_neither_ray_nor_duckdb() -> None:
    modules = [ids(p)[:-3].replace("/", ".") for p in FILES if ids(p).startswith("collectors/")]
    program = f"""
import sys
for name in ("ray", "duckdb", "polars", "jinja2", "numba", "numpy"):
    sys.modules[name] = None
import importlib
for module in {modules!r}:
    importlib.import_module(module.removesuffix(".__init__"))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=ROOT, check=True)


def test_whoever_reads_shards_needs_no_torch() -> None:
    program = """
import sys
sys.modules["torch"] = None
import collectors.schema, collectors.parts, collectors.writer, pipeline.cli, pipeline.analyze
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "collectors"], ids=ids)
def test_collectors_are_written_in_python_3_9(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 9))


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_sizes_and_names(path: Path) -> None:
    text = path.read_text()
    assert text.isascii()
    assert path.stem not in SILENT_NAMES
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            doc = ast.get_docstring(node)
            lines -= len(doc.splitlines()) + 1 if doc else 0
            assert lines <= 50, f"{ids(path)}: {node.name} has {lines} lines"


def test_no_device_name_outside_of_its_file() -> None:
    for path in FILES:
        text = path.read_text()
        assert "torch_npu" not in text or path.name == "npu.py"
        assert ".cuda" not in text
