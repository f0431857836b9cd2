"""The command line as a user meets it: exit codes, what is on stdout, one clear line for errors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from collectors.layout import shard_dirs
from collectors.parts import write_parquet
from collectors.schema import CALLS

from ..dumps import Run, Value, bad

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "command_line.txt"


def crossrank(*args: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = "import sys; from pipeline.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *map(str, args)]
    env = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=env)


def module(name: str, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"pipeline.{name}", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    run = Run(tmp_path / "dump", ranks=2)
    for rank in range(2):
        shard = run.rank(rank)
        (x,) = shard.call("Torch.log.0.forward", [Value()], [Value(nan=int(rank == 1))])
        (y,) = shard.comm("Distributed.all_reduce.0.forward", [x], [Value(nan=1)], reduce_op="SUM")
        shard.call("Torch.mul.0.forward", [y], [bad(nan=8)])
    return run.write()


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of a refusal."""
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


class TestAnalyze:
    @pytest.mark.parametrize("kind", ["shards", "msprobe"])
    def test_any_number_of_workers_gives_the_same_result(
        self, kind: str, dump: Path, tmp_path: Path
    ) -> None:
        """JSON is read by processes, which begin as copies of the command's."""
        source = dump if kind == "shards" else ROOT / "examples" / "tp2_dp2_log_of_zero"
        results = []
        for workers in (1, 2, 3):
            out = tmp_path / str(workers)
            done = module("analyze", source, "--out", out, "--workers", workers)
            assert done.returncode == 0, done.stderr
            assert f"{workers} task" in done.stderr
            results.append(json.loads((out / "result.json").read_text()))
        assert results[0]["verdict"] == "found"
        assert results[0] == results[1] == results[2]

    def test_the_answer_comes_first(self, dump: Path, tmp_path: Path) -> None:
        done = module("analyze", dump, "--out", tmp_path / "out")
        assert done.returncode == 0
        first, second = done.stdout.splitlines()[:2]
        assert first == (
            "nan was born on rank 1 in step 0 in Torch.log.0.forward and reached rank 0."
        )
        assert second == f"read 2 of 2 ranks; step 0: 6 calls, 12 tensors of {dump}"
        assert "rank 1 Torch.log.0.forward -> rank 1 Distributed.all_reduce.0" in done.stdout
        assert done.stderr.startswith(f"pipeline.analyze from {ROOT}/pipeline/analyze.py")
        assert {p.name for p in (tmp_path / "out").iterdir()} >= {
            "result.json",
            "report.html",
            "origins.parquet",
            "spread.parquet",
        }

    def test_json_alone_on_stdout(self, dump: Path, tmp_path: Path) -> None:
        done = module("analyze", dump, "--out", tmp_path / "out", "--json", "--quiet")
        assert done.stderr == ""
        shown = json.loads(done.stdout)
        assert shown == json.loads((tmp_path / "out" / "result.json").read_text())
        assert shown["verdict"] == "found"

    def test_result_is_strict_json(self, dump: Path, tmp_path: Path) -> None:
        module("analyze", dump, "--out", tmp_path / "out")

        def refuse(token: str) -> None:
            raise ValueError(token)

        json.loads((tmp_path / "out" / "result.json").read_text(), parse_constant=refuse)

    def test_exit_codes_on_request(self, dump: Path, tmp_path: Path) -> None:
        out = ("--out", tmp_path / "out")
        assert module("analyze", dump, *out, "--fail-on", "found").returncode == 3
        assert module("analyze", dump, *out, "--fail-on", "unknown").returncode == 0
        silent = Run(tmp_path / "silent")
        silent.rank(0).call("Torch.add.0.forward")
        done = module("analyze", silent.write(), *out, "--fail-on", "found,unknown")
        assert done.returncode == 4
        assert done.stdout.startswith("Cannot tell")

    def test_some_steps(self, tmp_path: Path) -> None:
        run = Run(tmp_path / "dump")
        for step in range(3):
            run.rank(0, step).call("Torch.log.0.forward", [Value()], [bad(nan=8)])
        done = module("analyze", run.write(), "--step", 2, "--json", "--out", tmp_path / "out")
        result = json.loads(done.stdout)
        assert result["read"]["steps"] == [2]
        assert [o["step"] for o in result["origins"]] == [2]

    def test_explain_is_a_script_for_a_duckdb_shell(self, dump: Path) -> None:
        done = module("analyze", dump, "--explain", "--quiet")
        con = duckdb.connect()
        con.execute(done.stdout)
        assert con.sql("SELECT rank, name FROM origins").fetchall() == [(1, "Torch.log.0.forward")]

    def test_parquet_beside_the_answer(self, dump: Path, tmp_path: Path) -> None:
        module("analyze", dump, "--out", tmp_path / "out")
        rows = duckdb.read_parquet(str(tmp_path / "out" / "spread.parquet"))
        assert rows.select("rank", "hops").order("rank").fetchall() == [(0, 1), (1, 0)]

    def test_report_again(self, dump: Path, tmp_path: Path) -> None:
        module("analyze", dump, "--out", tmp_path / "out")
        report = tmp_path / "out" / "report.html"
        before = report.read_text()
        report.unlink()
        assert module("report", tmp_path / "out").returncode == 0
        assert report.read_text() == before
        assert "result.json is not there" in error_of(module("report", tmp_path))

    def test_nothing_half_written(self, dump: Path, tmp_path: Path) -> None:
        module("analyze", dump, "--out", tmp_path / "out")
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


class TestWhatCannotBeRead:
    def test_not_there(self, tmp_path: Path) -> None:
        line = error_of(module("analyze", tmp_path / "nothing"))
        assert "nothing does not exist; expected the folder of a dump" in line

    def test_empty(self, tmp_path: Path) -> None:
        assert "is empty; expected step=<N>" in error_of(module("analyze", tmp_path))

    def test_other_files(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("x")
        assert "holds no dump; expected" in error_of(module("analyze", tmp_path))

    def test_a_file_that_is_no_dump(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("x")
        assert "holds no dump; expected" in error_of(module("analyze", tmp_path / "notes.txt"))

    def test_run_without_any_shard(self, dump: Path) -> None:
        shutil.rmtree(dump / "step=0")
        assert "holds no dump" in error_of(module("analyze", dump))

    def test_newer_schema_of_the_run(self, dump: Path) -> None:
        text = (dump / "run.json").read_text()
        (dump / "run.json").write_text(text.replace('"schema_version": 1', '"schema_version": 7'))
        line = error_of(module("analyze", dump))
        assert "run.json has schema version 7, this crossrank reads up to 1; upgrade it" in line

    def test_newer_schema_of_a_part(self, dump: Path) -> None:
        newer = CALLS.empty_table().replace_schema_metadata({"crossrank.schema_version": "7"})
        write_parquet(newer, shard_dirs(dump)[0, 1] / "calls-00001.parquet")
        line = error_of(module("query", dump, "SELECT 1"))
        assert "calls-00001.parquet has schema version 7" in line

    def test_step_that_is_not_there(self, dump: Path) -> None:
        assert "holds no step [4]; its steps are [0]" in error_of(
            module("analyze", dump, "--step", 4)
        )


class TestDamage:
    def many(self, tmp_path: Path) -> Path:
        run = Run(tmp_path / "dump", ranks=64)
        for rank in range(64):
            run.rank(rank).call("Torch.add.0.forward", [Value()], [Value()])
        return run.write()

    def test_broken_files_among_many(self, tmp_path: Path) -> None:
        dump = self.many(tmp_path)
        empty = shard_dirs(dump)[0, 17] / "tensors-00000.parquet"
        empty.write_bytes(b"")
        cut = shard_dirs(dump)[0, 40] / "calls-00000.parquet"
        cut.write_bytes(cut.read_bytes()[:-100])
        done = module("analyze", dump, "--json", "--out", tmp_path / "out")
        result = json.loads(done.stdout)
        assert done.returncode == 0
        told = {w["rank"]: w for w in result["warnings"] if w["code"] == "shard_unreadable"}
        assert set(told) == {17, 40}
        assert "tensors-00000.parquet is empty" in told[17]["text"]
        assert "calls-00000.parquet cannot be read" in told[40]["text"]
        sql = "SELECT count(DISTINCT rank) AS n FROM tensors"
        counted = module("query", dump, sql, "--format", "json")
        assert json.loads(counted.stdout) == [{"n": 63}]

    def test_killed_while_writing(self, tmp_path: Path) -> None:
        dump = self.many(tmp_path)
        folder = shard_dirs(dump)[0, 3]
        (folder / "calls-00000.parquet").rename(folder / "calls-00000.parquet.unfinished")
        done = module("analyze", dump, "--json", "--out", tmp_path / "out")
        (warning,) = json.loads(done.stdout)["warnings"]
        assert (warning["code"], warning["rank"], warning["step"]) == ("step_incomplete", 3, 0)
        assert "calls-00000.parquet.unfinished was never finished" in warning["text"]


class TestIngest:
    def test_refusals(self, dump: Path, tmp_path: Path) -> None:
        assert "holds shards of crossrank already" in error_of(
            module("ingest", dump, tmp_path / "x")
        )
        source = tmp_path / "step0" / "rank0"
        source.mkdir(parents=True)
        (source / "dump.json").write_text('{"data": {}}')
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "file").touch()
        assert "is not empty; give a new folder" in error_of(
            module("ingest", tmp_path / "step0", tmp_path / "full")
        )


class TestSeedCommands:
    def test_same_file_as_msprobe(self, unpack: Callable[[str], Path], tmp_path: Path) -> None:
        step = unpack("nan/A02b_compute_tp4_allreduce_mix") / "step0"
        done = crossrank("-f", "pytorch", "nan_analyze", "-i", step, "-o", tmp_path / "o")
        assert done.returncode == 0
        (file,) = (tmp_path / "o").glob("anomaly_analyze_*.json")
        ((rank, (node,)),) = json.loads(file.read_text()).items()
        assert rank == "rank_2"
        assert node["op_name"] == "Torch.log.0.forward"
        assert node["construct_info"] == ["Module.0.M.forward.0", "Torch.log.0.forward"]
        assert node["data_info"]["output"][0]["Min"] == float("-inf")
        assert node["stack_info"][0].startswith("File /train/cases.py, line 56, in forward")

    def test_nothing_found(self, unpack: Callable[[str], Path], tmp_path: Path) -> None:
        step = unpack("nan/A01_clean_tp2") / "step0"
        done = crossrank("-f", "pytorch", "nan_analyze", "-i", step, "-o", tmp_path / "o")
        assert "Cannot find any anomaly node, no need to generate analyze file." in done.stdout
        assert not (tmp_path / "o").exists()

    def test_shards_are_for_the_other_command(self, dump: Path) -> None:
        done = crossrank("-f", "pytorch", "nan_analyze", "-i", dump)
        assert "crossrank analyze DUMP" in error_of(done)


def test_usage_errors_are_exit_code_2() -> None:
    assert crossrank("analyse").returncode == 2
    assert crossrank("analyze").returncode == 2
    assert crossrank("analyze", "x", "--memory", "lots").returncode == 2
    assert crossrank("analyze", "x", "--fail-on", "bad").returncode == 2


def test_all_options_are_the_agreed_ones() -> None:
    """Changing the command line is a decision: change tests/data/command_line.txt with it."""
    tools = ["analyze", "compare", "checkpoint", "rl", "query", "ingest", "report"]
    commands = ([], *([tool] for tool in tools))
    texts = [crossrank(*command, "--help").stdout for command in commands]
    assert "\n".join(texts) == GOLDEN.read_text()
