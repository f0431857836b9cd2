"""`crossrank checkpoint` as a user meets it, and the same on Ray; msprobe's command line."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from pipeline.checkpoint_compare import Question, compare_checkpoints
from pipeline.checkpoint_plan import compiled, tasks
from pipeline.cli import main
from pipeline.engine import Engine
from pipeline.engine_local import LocalEngine
from pipeline.engine_ray import RayEngine
from pipeline.readers.checkpoint.opening import open_checkpoint
from pipeline.readers.checkpoint.pairing import pair
from pipeline.settings import limits
from tests.checkpoints import compare, llama, write_megatron, write_safetensors


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    model = llama()
    a = write_safetensors(tmp_path / "a", model)
    model["model.norm.weight"][3] += 1
    return a, write_megatron(tmp_path / "b", model, 2)


def run(*args: object) -> int:
    return main(["checkpoint", *map(str, args), "--quiet"])


def test_result_folder(sides: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(*sides, "--out", out) == 0
    result = json.loads((out / "result.json").read_text())
    (finding,) = [f for f in result["findings"] if f["status"] == "different"]
    assert (finding["name"], finding["name_b"]) == (
        "model.norm.weight",
        "decoder.final_layernorm.weight",
    )
    assert finding["first_index"] == [3]
    assert (out / "report.html").read_text().isascii()
    statuses = pq.read_table(out / "verdicts.parquet")["status"].to_pylist()
    assert statuses.count("equal") > 30
    assert statuses.count("different") == 1


def test_the_answer_on_stdout(
    sides: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*sides, "--out", tmp_path / "out")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Different: 1 tensor differs; first of all model.norm.weight at [3]."
    assert "(safetensors, 39 tensors)" in lines[1]
    assert "(megatron, tp 2, 27 tensors)" in lines[1]
    run(*sides, "--out", tmp_path / "out", "--json")
    assert json.loads(capsys.readouterr().out)["verdict"] == "different"


def test_fail_on(sides: tuple[Path, Path], tmp_path: Path) -> None:
    assert run(*sides, "--out", tmp_path / "o", "--fail-on", "found") == 3
    assert run(sides[0], sides[0], "--out", tmp_path / "o", "--fail-on", "found,unknown") == 0


def test_the_sql_can_be_pasted(
    sides: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*sides, "--explain") == 0
    script = capsys.readouterr().out
    with duckdb.connect() as con:
        con.execute(script)
        assert con.sql("SELECT count(*) FROM verdicts").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "holds no checkpoint"),
        ({"latest_checkpointed_iteration.txt": "12"}, "there is no such folder"),
        ({"model.safetensors.index.json": "{"}, "cannot be read"),
        ({".metadata": "x"}, "cannot be read"),
        ({"latest": "global_step9"}, "which is not there"),
    ],
)
def test_what_is_no_checkpoint(
    sides: tuple[Path, Path],
    tmp_path: Path,
    content: dict[str, str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    for name, text in content.items():
        (folder / name).write_text(text)
    assert run(sides[0], folder, "--out", tmp_path / "o") == 2
    error = capsys.readouterr().err
    assert words in error
    assert str(folder) in error
    assert run(tmp_path / "missing", sides[0]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_layout_rules_of_a_user(tmp_path: Path) -> None:
    q, k = torch.randn(4, 3), torch.randn(4, 3)
    torch.save({"net.qk.weight": torch.cat([q, k]), "x": torch.ones(1)}, tmp_path / "a.pt")
    torch.save({"net.q.weight": q, "net.k.weight": k, "x": torch.ones(1)}, tmp_path / "b.pt")
    assert compare(tmp_path / "a.pt", tmp_path / "b.pt")["verdict"] == "different"
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        'rules:\n  - {name: "net.qk.{p}", layout: halves, parts: ["net.q.{p}", "net.k.{p}"]}\n'
    )
    result = compare(tmp_path / "a.pt", tmp_path / "b.pt", layout=str(rules))
    assert (result["verdict"], result["read"]["equal"]) == ("same", 2)
    rules = tmp_path / "bad.yaml"
    rules.write_text("rules:\n  - {name: x, parts: [y], layout: sideways}\n")
    with pytest.raises(Exception, match="layout is one of"):
        compare(tmp_path / "a.pt", tmp_path / "b.pt", layout=str(rules))


@pytest.mark.usefixtures("cluster")
def test_on_ray(sides: tuple[Path, Path]) -> None:
    here = compare(*sides, every=True)
    question = Question(*sides, every=True)
    with compare_checkpoints(question, limits(1), lambda size: RayEngine(2, None)) as (there, _):
        there["read"]["seconds"] = here["read"]["seconds"]
        assert there == here


@pytest.mark.usefixtures("cluster")
def test_compiled_loops_tell_the_same(
    sides: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a large checkpoint is compared with, in threads and on Ray; sums to 12 digits."""
    question = Question(*sides, every=True)
    plain = _rounded(compare(*sides, every=True)["findings"])
    monkeypatch.setattr("pipeline.checkpoint_plan.COMPILED_FROM", 1)
    engines: list[Engine] = [LocalEngine(1), LocalEngine(2), RayEngine(2, None)]
    for engine in engines:
        with compare_checkpoints(question, limits(1), lambda size, e=engine: e) as (result, _):
            assert _rounded(result["findings"]) == plain


def test_only_what_there_is_much_of_is_worth_a_loop(tmp_path: Path) -> None:
    save = {"large": torch.zeros(1, dtype=torch.bfloat16).expand(2**28), "small": torch.zeros(9)}
    torch.save(save, tmp_path / "a.pt")  # elements that are one in the file
    contents = open_checkpoint(tmp_path / "a.pt")
    pairs = pair(contents, contents, optimizer=False).pairs
    assert compiled(pairs) == {("bfloat16", "bfloat16")}
    assert {p.fused for task in tasks(pairs[-1:], 2) for p in task.pieces} == {False}
    assert {p.fused for task in tasks(pairs[:1], 2) for p in task.pieces} == {True}


def _rounded(findings: object) -> object:
    """Return findings as JSON has them, floats rounded."""
    return json.loads(json.dumps(findings), parse_float=lambda text: f"{float(text):.12g}")


def test_tasks_are_of_even_bytes(tmp_path: Path) -> None:
    state = {"large": torch.zeros(3000, 1000), **{f"s{n}": torch.zeros(100) for n in range(500)}}
    torch.save(state, tmp_path / "a.pt")
    contents = open_checkpoint(tmp_path / "a.pt")
    pairs = pair(contents, contents, optimizer=False).pairs
    work = tasks(pairs, 2)
    sizes = [task.bytes for task in work]
    assert sum(sizes) == 2 * 4 * (3_000_000 + 50_000)
    assert len(work) > 10
    assert max(sizes[:-1]) < 1.3 * min(sizes[:-1])


def test_msprobe_config_check(sides: tuple[Path, Path], tmp_path: Path) -> None:
    tp1 = write_megatron(tmp_path / "tp1", llama())
    out = tmp_path / "similarity.json"
    command = ["-f", "pytorch", "config_check", "--compare", str(tp1), str(sides[1])]
    assert main([*command, "-o", str(out)]) == 0
    rows = json.loads(out.read_text())
    assert len(rows) == 27
    assert rows["decoder.layers.0.mlp.linear_fc1.weight"] == {
        "l2": 0.0,
        "cos": 1.0,
        "numel": 4096,
        "shape": [128, 32],
    }
    changed = rows["decoder.final_layernorm.weight"]
    assert changed["l2"] == pytest.approx(1.0)
    assert changed["cos"] < 1
    assert main([*command, "-o", str(out)]) == 2  # it is there already


def test_dumps_of_tensors(tmp_path: Path) -> None:
    """Folders of .npy and of .pt with one tensor each, as msprobe's dumps have them."""
    values = {f"Functional.linear.{n}.forward.output.0": torch.randn(3, 2) for n in range(3)}
    for kind in ("npy", "pt"):
        (tmp_path / kind).mkdir()
        for name, value in values.items():
            if kind == "npy":
                np.save(tmp_path / kind / f"{name}.npy", value.numpy())
            else:
                torch.save(value, tmp_path / kind / f"{name}.pt")
    result = compare(tmp_path / "npy", tmp_path / "pt")
    assert (result["verdict"], result["read"]["equal"]) == ("same", 3)
    listed = compare(tmp_path / "npy", tmp_path / "pt", every=True)["findings"]
    assert {finding["name"] for finding in listed} == set(values)
    (tmp_path / "npy" / "Functional.linear.1.forward.output.0.npy").write_bytes(b"")
    result = compare(tmp_path / "npy", tmp_path / "pt")
    assert result["verdict"] == "unknown"
    objects = np.array([{}], dtype=object)
    np.save(tmp_path / "npy" / "Functional.linear.1.forward.output.0.npy", objects)
    (warning,) = compare(tmp_path / "npy", tmp_path / "pt")["warnings"]
    assert "no array of numbers" in warning["text"]
