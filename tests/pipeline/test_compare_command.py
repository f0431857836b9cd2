"""The command line of compare, and msprobe's command line under our name."""

from __future__ import annotations

import csv
import json
import tarfile
from pathlib import Path

import openpyxl
import pytest

from pipeline.cli import main

from ..conftest import DATA
from ..dumps import Run, Value

COLUMNS = (
    "NPU Name,Bench Name,NPU Dtype,Bench Dtype,NPU Tensor Shape,Bench Tensor Shape,"
    "NPU Requires_grad,Bench Requires_grad,Max diff,Min diff,Mean diff,L2norm diff,MaxRelativeErr,"
    "MinRelativeErr,MeanRelativeErr,NormRelativeErr,NPU max,NPU min,NPU mean,NPU l2norm,Bench max,"
    "Bench min,Bench mean,Bench l2norm,Requires_grad Consistent,Result,Err_message,NPU_Stack_Info"
).split(",")


@pytest.fixture
def pair(tmp_path: Path):
    """Unpack a real pair of dumps: benchmark and target."""

    def unpacked(case: str) -> tuple[Path, Path]:
        folder = tmp_path / case
        with tarfile.open(DATA / "compare" / f"{case}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        return folder / "bench", folder / "target"

    return unpacked


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_the_answer_in_the_terminal(pair, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run("compare", *pair("B04_extra_api_L1"), "--out", out, "--quiet") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("The runs part at step 0, rank 0, Functional.gelu.1.forward (")
    assert "          return self.fc2(F.gelu(h))" in lines
    assert "  source  Tensor.__add__.3.forward, an operation that only one run has" in lines
    assert {f.name for f in out.iterdir()} >= {"result.json", "report.html", "tensor_pairs.parquet"}
    assert list(tmp_path.glob(".out*")) == []


def test_json_and_exit_codes(pair, tmp_path, capsys) -> None:
    sides = pair("B03_randint_seed_L1")
    told = ["--out", tmp_path / "out", "--quiet", "--json", "--fail-on", "found"]
    assert run("compare", *sides, *told) == 3
    assert json.loads(capsys.readouterr().out)["first_divergence"]["slot"] == "input.1"
    assert run("compare", sides[0], sides[0], *told) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "same"


def test_what_cannot_be_compared_is_said_in_one_line(tmp_path, capsys) -> None:
    assert run("compare", tmp_path / "nothing", tmp_path) == 2
    assert "nothing does not exist" in capsys.readouterr().err
    dumps = []
    for ranks in (2, 3):
        shards = Run(tmp_path / str(ranks), ranks=ranks)
        for rank in range(ranks):
            shards.rank(rank).call("Torch.exp.0.forward", [Value()], [Value()])
        dumps.append(shards.write())
    assert run("compare", *dumps, "--quiet") == 2
    assert "one number of ranks must be a multiple of the other" in capsys.readouterr().err


def test_ranks_that_are_named(tmp_path, capsys) -> None:
    dumps = []
    for ranks in (2, 3):
        shards = Run(tmp_path / str(ranks), ranks=ranks)
        for rank in range(ranks):
            shards.rank(rank).call("Torch.exp.0.forward", [Value()], [Value(max=1.0 + rank)])
        dumps.append(shards.write())
    told = [*dumps, "--out", tmp_path / "out", "--quiet", "--json", "--ranks"]
    assert run("compare", *told, "0:0", "1:1") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "same"
    assert run("compare", *told, "2:1") == 0
    assert json.loads(capsys.readouterr().out)["first_divergence"]["rank"] == 2
    assert run("compare", *told, "2:7") == 2
    assert "has no rank 7; it has ranks 0, 1" in capsys.readouterr().err


def test_explain_is_a_script_that_duckdb_runs(tmp_path, capsys) -> None:
    import duckdb

    dumps = []
    for name, top in (("bench", 1.0), ("target", 2.0)):
        shards = Run(tmp_path / name)
        shards.rank(0).call("Torch.exp.0.forward", [Value()], [Value(max=top)])
        dumps.append(shards.write())
    assert run("compare", *dumps, "--explain", "--quiet") == 0
    con = duckdb.connect()
    con.execute(capsys.readouterr().out)
    assert con.sql("SELECT name, status FROM findings").fetchall() == [
        ("Torch.exp.0.forward", "suspect")
    ]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_msprobes_command_line_gives_its_columns(pair, tmp_path, kind: str) -> None:
    bench, target = pair("B02_bf16_fc1_L1")
    files = {
        side: str(next(folder.rglob("dump.json")))
        for side, folder in (("npu_path", target), ("bench_path", bench))
    }
    config = tmp_path / "compare.json"
    config.write_text(json.dumps(files | {"stack_path": "", "is_print_compare_log": True}))
    out = tmp_path / "out"
    flags = ["-s", *(["--xlsx"] if kind == "xlsx" else [])]
    assert run("-f", "pytorch", "compare", "-i", config, "-o", out, *flags) == 0
    (file,) = out.glob(f"compare_result_*.{kind}")
    if kind == "csv":
        rows = list(csv.reader(file.open()))
    else:
        sheet = openpyxl.load_workbook(file)["Sheet1"]
        rows = [[cell.value for cell in row] for row in sheet]
    assert rows[0] == COLUMNS
    found = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in rows[1:]}
    first = found["Functional.linear.1.forward.input.0"]
    assert (first["NPU Dtype"], first["Bench Dtype"]) == ("torch.bfloat16", "torch.float32")
    assert first["Result"] == "error"
    assert first["Err_message"] == '["error: The dtype of NPU and Bench are inconsistent."]'
    assert found["Functional.linear.0.forward.input.1"]["Result"] == "pass"


def test_rows_that_msprobe_colours(pair, tmp_path) -> None:
    bench, target = pair("B03_randint_seed_L1")
    files = {
        side: str(next(folder.rglob("dump.json")))
        for side, folder in (("npu_path", target), ("bench_path", bench))
    }
    config = tmp_path / "compare.json"
    config.write_text(json.dumps(files))
    assert run("-f", "pytorch", "compare", "-i", config, "-o", tmp_path / "out", "--xlsx") == 0
    (file,) = (tmp_path / "out").glob("*.xlsx")
    sheet = openpyxl.load_workbook(file)["Sheet1"]
    tones = {
        sheet[str(rule.sqref).split(":")[0]].value: rule.rules[0].dxf.fill.bgColor.rgb[-6:]
        for rule in sheet.conditional_formatting
    }
    assert tones["Tensor.__mul__.0.forward.output.0"] == "FF0000"
    assert tones["Tensor.__add__.0.forward.output.0"] == "FFFF00"
    assert "Functional.linear.1.forward.output.0" not in tones


def test_a_compare_json_without_paths(tmp_path, capsys) -> None:
    config = tmp_path / "compare.json"
    config.write_text("{}")
    assert run("-f", "pytorch", "compare", "-i", config, "-o", tmp_path) == 2
    assert "must have npu_path and bench_path" in capsys.readouterr().err


def test_the_report_is_drawn_again(pair, tmp_path) -> None:
    out = tmp_path / "out"
    run("compare", *pair("B05_bf16_fc1_mix"), "--out", out, "--quiet")
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    assert run("report", out) == 0
    assert (out / "report.html").read_text() == before
