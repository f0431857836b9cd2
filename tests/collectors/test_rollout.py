"""SingleSave: every bit survives, training is never broken, any process may save."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from collectors import SingleSave
from pipeline.readers.dtypes import dtype_of, widened
from pipeline.readers.errors import ReadError
from pipeline.readers.rollouts import find_parts, read_part

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Leave no writer to the next test."""
    yield
    SingleSave.close()


def saved(dump: Path, **values: Any) -> dict[tuple[str, str], Any]:
    """Save values in one step and read them back, by key and entry."""
    SingleSave(dump)
    SingleSave.save(values)
    SingleSave.step()
    SingleSave.close()
    (part,) = find_parts(dump)
    return {(value.name, value.entry): value for value in read_part(part)}


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([2**53 + 1, -(2**63), 2**63 - 1]),
        torch.tensor([1.5, -0.0, float("nan"), float("inf"), 3.3895e38], dtype=torch.bfloat16),
        torch.tensor([65504.0, 6e-8], dtype=torch.float16),
        torch.tensor([[True, False], [False, False]]),
        torch.tensor(2.5, dtype=torch.float64),
        torch.zeros(0, 4),
        torch.tensor([255, 0], dtype=torch.uint8),
        torch.arange(12).reshape(3, 4).t(),
    ],
    ids=lambda value: f"{value.dtype} {tuple(value.shape)}",
)
def test_tensors_survive_exactly(tmp_path: Path, value: torch.Tensor) -> None:
    (found,) = saved(tmp_path, x=value).values()
    assert (found.dtype, found.shape) == (
        str(value.dtype).removeprefix("torch."),
        tuple(value.shape),
    )
    exact = value.double().numpy() if value.is_floating_point() else value.numpy()
    np.testing.assert_array_equal(found.array.astype(exact.dtype), exact)


def test_files_without_the_column_of_compression_are_read(tmp_path: Path) -> None:
    small, texts = torch.tensor([0.5, -3.0]), ["a", "b"]  # too small to be compressed
    saved(tmp_path, x=small, y=texts)
    (file,) = tmp_path.rglob("rollout-*.parquet")
    table = pq.read_table(file)
    assert table.column("codec").null_count == len(table)
    pq.write_table(table.drop_columns("codec"), file)
    (part,) = find_parts(tmp_path)
    found = {value.name: value.array.tolist() for value in read_part(part)}
    assert found == {"x": small.tolist(), "y": texts}


@pytest.mark.parametrize("kind", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"])
def test_every_code_of_float8(tmp_path: Path, kind: str) -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(getattr(torch, f"float8_{kind}"))
    (found,) = saved(tmp_path, x=codes).values()
    np.testing.assert_array_equal(found.array, codes.float().numpy())


def test_every_code_of_bfloat16() -> None:
    codes = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(torch.bfloat16)
    found = widened(codes.view(torch.uint8).numpy().view(dtype_of("bfloat16")))
    np.testing.assert_array_equal(found, codes.float().numpy())


def test_lists_dicts_texts_and_numbers(tmp_path: Path) -> None:
    found = saved(
        tmp_path,
        ids=[[1, 2, 3], [], [2**60]],
        text=["h\u00e9", ""],
        logits=[torch.zeros(2), torch.zeros(2, 3)],
        extra={"a": np.arange(3), "b": torch.ones(1)},
        lr=1e-6,
        rewards=[0.5, 1],
    )
    ids = found["ids", ""]
    assert (ids.lengths.tolist(), ids.array[2, 0], ids.dtype) == ([3, 0, 1], 2**60, "int64")
    assert found["text", ""].array.tolist() == ["h\u00e9", ""]
    assert found["logits", "1"].shape == (2, 3)
    assert found["extra", "a"].array.tolist() == [0, 1, 2]
    assert (found["lr", ""].array, found["lr", ""].shape) == (1e-6, ())
    assert found["rewards", ""].dtype == "float64"


def test_what_changes_after_save_is_not_saved(tmp_path: Path) -> None:
    tensor, array = torch.zeros(3), np.zeros(3)
    SingleSave(tmp_path)
    SingleSave.save({"t": tensor, "a": array})
    tensor += 1
    array += 1
    SingleSave.close()
    values = read_part(find_parts(tmp_path)[0])
    assert [value.array.tolist() for value in values] == [[0, 0, 0]] * 2


def test_steps_and_micro_steps(tmp_path: Path) -> None:
    SingleSave(tmp_path)
    for step in range(2):
        for micro in range(3):
            SingleSave.save({"x": 10 * step + micro})
        SingleSave.save_ex({"y": step}, micro_batch=7)
        SingleSave.step()
    SingleSave.close()
    found = {
        (part.step, value.key, value.micro): int(value.array)
        for part in find_parts(tmp_path)
        for value in read_part(part)
    }
    assert found == {(s, "x", m): 10 * s + m for s in range(2) for m in range(3)} | {
        (s, "y", 7): s for s in range(2)
    }
    footers = [pq.read_metadata(f).metadata for f in tmp_path.rglob("*.parquet")]
    assert {footer[b"crossrank.complete"] for footer in footers} == {b"true"}


def test_a_data_proto_by_its_shape(tmp_path: Path) -> None:
    batch = SimpleNamespace(
        batch={"responses": torch.tensor([[5, 6]]), "old_log_probs": torch.tensor([[-1.0, -2.0]])},
        non_tensor_batch={
            "uid": np.array(["u"], dtype=object),
            "reward_model": np.array([{"style": "rule"}], dtype=object),
        },
    )
    SingleSave(tmp_path)
    SingleSave.save(batch)
    SingleSave.close()
    values = {value.key: value for value in read_part(find_parts(tmp_path)[0])}
    assert set(values) == {"response_ids", "old_log_prob", "uid"}
    assert values["uid"].array.tolist() == ["u"]


def test_what_cannot_be_saved_is_told_of_and_the_rest_is_saved(tmp_path: Path) -> None:
    SingleSave(tmp_path)
    with pytest.warns(UserWarning, match="bad is a object; expected a tensor"):
        SingleSave.save({"bad": object(), "good": 1})
    with pytest.warns(UserWarning, match="big holds a number beyond 64 bits"):
        SingleSave.save({"big": [2**70]})
    with pytest.warns(UserWarning, match="the key 1 is no text"):
        SingleSave.save({1: 2})
    with pytest.warns(UserWarning, match="expected a dict"):
        SingleSave.save(5)
    SingleSave.close()
    assert [value.key for value in read_part(find_parts(tmp_path)[0])] == ["good"]


def test_without_a_folder_nothing_happens() -> None:
    with pytest.warns(UserWarning, match="comes first"):
        SingleSave.save({"x": 1})
    SingleSave.step()


def test_a_disk_that_cannot_be_written_does_not_stop_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    SingleSave(tmp_path / "file")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        SingleSave.save({"x": 1})
        SingleSave.flush()
    assert ["RL data could not be written" in str(w.message) for w in told] == [True]


def test_save_returns_long_before_the_disk(tmp_path: Path) -> None:
    values = {"x": torch.randn(16 * 2**20)}
    SingleSave(tmp_path)
    start = time.perf_counter()
    SingleSave.save(values)
    handed_over = time.perf_counter() - start
    SingleSave.flush()
    assert handed_over < (time.perf_counter() - start) / 2


def test_a_killed_process_keeps_what_was_flushed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from collectors import SingleSave; SingleSave(sys.argv[1]);"
        "SingleSave.save({'x': 1}); SingleSave.flush(); print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [value.key for value in read_part(find_parts(tmp_path)[0])] == ["x"]


@pytest.mark.parametrize(
    "end", ["", "raise SystemExit(3)", "import os, signal; os.kill(os.getpid(), 15)"]
)
def test_every_exit_that_can_be_caught_writes(tmp_path: Path, end: str) -> None:
    code = (
        f"import sys; from collectors import SingleSave; SingleSave({str(tmp_path)!r});"
        f"SingleSave.save({{'x': 1}}); {end}"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT)
    assert [value.key for value in read_part(find_parts(tmp_path)[0])] == ["x"]


def test_processes_of_one_rank_share_a_dump(tmp_path: Path) -> None:
    code = (
        f"import sys; from collectors import SingleSave; SingleSave({str(tmp_path)!r});"
        "SingleSave.save({sys.argv[1]: 1}); SingleSave.step(); SingleSave.close()"
    )
    env = os.environ | {"RANK": "3"}
    running = [
        subprocess.Popen([sys.executable, "-c", code, key], cwd=ROOT, env=env) for key in ("a", "b")
    ]
    assert [process.wait() for process in running] == [0, 0]
    (part,) = find_parts(tmp_path)
    assert part.rank == 3
    assert {value.key for value in read_part(part)} == {"a", "b"}


def test_configuration(tmp_path: Path) -> None:
    SingleSave(tmp_path)
    SingleSave.save_config({"lr": 1e-6, "path": tmp_path})
    text = (tmp_path / "configurations.json").read_text()
    assert json.loads(text) == {"lr": 1e-6, "path": str(tmp_path)}


def test_folders_of_msprobe(tmp_path: Path) -> None:
    SingleSave(tmp_path, npy=True)
    value = torch.tensor([[1.5, -2.0], [0.25, 4.0]], dtype=torch.bfloat16)
    SingleSave.save({"response": value, "pair": [torch.zeros(2), torch.tensor(3)]})
    SingleSave.step()
    SingleSave.close()
    place = "step0/rank0/micro_step0"
    array = np.load(tmp_path / f"data/response/{place}/response.npy")
    assert (array.dtype, array.tolist()) == (np.float32, value.float().tolist())
    told = json.loads((tmp_path / f"data/response/{place}/response.json").read_text())["data"]
    assert (told["max"], told["min"], told["mean"], told["shape"]) == (4.0, -2.0, 0.9375, [2, 2])
    assert told["norm"] == pytest.approx(float(value.float().norm()))
    scalar = np.load(tmp_path / f"data/pair/{place}/pair.1.npy")
    assert (scalar.shape, float(scalar)) == ((), 3.0)
    assert {v.name for v in read_part(find_parts(tmp_path)[0])} == {"response", "pair"}


def test_no_numpy_is_needed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['numpy'] = None; from collectors import SingleSave;"
        f"SingleSave({str(tmp_path)!r}); SingleSave.save({{'x': [1, 2]}}); SingleSave.close()"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, check=True)
    assert read_part(find_parts(tmp_path)[0])[0].array.tolist() == [1, 2]


def test_numbers_are_compressed_value_by_value(tmp_path: Path) -> None:
    found = saved(tmp_path, zeros=torch.zeros(100, 100), one=torch.tensor(1.5))
    (file,) = tmp_path.rglob("rollout-*.parquet")
    rows = {row["key"]: row for row in pq.ParquetFile(file).read().to_pylist()}
    assert (rows["zeros"]["codec"], rows["one"]["codec"]) == ("lz4_raw", None)
    assert len(rows["zeros"]["data"]) < 1000
    assert rows["one"]["data"] == np.float32(1.5).tobytes()
    np.testing.assert_array_equal(found["zeros", ""].array, np.zeros((100, 100)))


def test_a_large_key_can_be_read_alone(tmp_path: Path) -> None:
    noise = torch.randn(3 * 2**20, generator=torch.Generator().manual_seed(0))
    saved(tmp_path, a=noise, b=noise + 1, c=torch.ones(4), d=torch.ones(4))
    (file,) = tmp_path.rglob("rollout-*.parquet")
    opened = pq.ParquetFile(file)
    groups = [
        opened.read_row_group(n, ["key"]).column("key").to_pylist()
        for n in range(opened.num_row_groups)
    ]
    assert groups == [["a"], ["b"], ["c", "d"]]
    (value,) = read_part(find_parts(tmp_path)[0], {"b"})
    np.testing.assert_array_equal(value.array, (noise + 1).numpy())


def test_a_shard_without_our_columns_is_told_of(tmp_path: Path) -> None:
    saved(tmp_path, x=torch.ones(4))
    (file,) = tmp_path.rglob("rollout-*.parquet")
    table = pq.ParquetFile(file).read()
    pq.write_table(table.drop(["lengths"]), file)
    with pytest.raises(ReadError, match="lengths"):
        read_part(find_parts(tmp_path)[0])


def test_equal_values_are_equal_packed_and_others_not(tmp_path: Path) -> None:
    first = saved(tmp_path / "a", x=torch.zeros(64, 64), y=torch.zeros(64, 64))
    other = saved(tmp_path / "b", x=torch.zeros(64, 64), y=torch.zeros(4096))
    assert first["x", ""].content == other["x", ""].content
    assert first["y", ""].content != other["y", ""].content  # the same bytes, another shape
    other = saved(tmp_path / "c", x=torch.full((64, 64), -0.0))
    assert first["x", ""].content != other["x", ""].content
