"""Records in forms that are read another way than most: the same columns come of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from pipeline.readers.msprobe.shard import MsprobeShard, read_shard

PLAIN = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": 1.0, "Min": 0.0}
LIMIT = 65504.0


def tensor(**content: Any) -> dict[str, Any]:
    return {**PLAIN, **content}


def text(records: dict[str, Any]) -> bytes:
    return json.dumps({"task": "statistics", "data": records}).encode()


def read(folder: Path, content: bytes) -> MsprobeShard:
    (folder / "dump.json").write_bytes(content)
    return read_shard(folder, 0)


def row(folder: Path, item: dict[str, Any], **record: Any) -> dict[str, Any]:
    """Return the row of a tensor that stands between two plain ones."""
    call = {"input_args": [PLAIN], "output": [item, PLAIN], **record}
    rows = read(folder, text({"Torch.exp.0.forward": call})).tensors.to_pylist()
    assert [r["slot"] for r in rows] == ["input.0", "output.0", "output.1"]
    for plain in (rows[0], rows[2]):
        assert (plain["max"], plain["min"], plain["has_nan"]) == (1.0, 0.0, False)
    return dict(rows[1])


@pytest.mark.parametrize(
    ("high", "low", "columns"),
    [
        (2.0, -1.0, (2.0, -1.0, False, False, False)),
        (math.nan, math.nan, (None, None, True, None, None)),
        (math.inf, -1.0, (None, -1.0, False, True, False)),
        (1.0, -math.inf, (1.0, None, False, False, True)),
        (None, 1.0, (None, 1.0, None, None, None)),
        ("nan", "-Inf", (None, None, True, None, None)),
        ("inf", 1, (None, 1.0, False, True, False)),
        ("many", 1.0, (None, 1.0, None, None, None)),
        (2**60 + 1, -(10**25), (float(2**60), -1e25, False, False, False)),
        (True, False, (1.0, 0.0, False, False, False)),
    ],
)
def test_what_max_and_min_say(tmp_path: Path, high: Any, low: Any, columns: Any) -> None:
    got = row(tmp_path, tensor(Max=high, Min=low))
    names = ("max", "min", "has_nan", "has_posinf", "has_neginf")
    assert tuple(got[name] for name in names) == columns


def test_the_finite_elements_alone(tmp_path: Path) -> None:
    spared = {"Max_except_inf_nan": 7.0, "Min_except_inf_nan": -math.inf}
    got = row(tmp_path, tensor(Max=math.nan, Min=math.nan, Mean=math.inf, Norm="3", **spared))
    assert (got["max"], got["min"], got["mean"], got["norm"]) == (7.0, None, None, 3.0)


@pytest.mark.parametrize(
    ("dtype", "high", "short", "saturated"),
    [
        ("torch.float16", LIMIT, "float16", True),
        ("Float16", LIMIT - 32, "float16", False),
        ("mindspore.float32", LIMIT, "float32", False),
        ("torch.int64", LIMIT, "int64", None),
        (None, LIMIT, "none", None),
    ],
)
def test_saturation(
    tmp_path: Path, dtype: Any, high: float, short: str, saturated: bool | None
) -> None:
    got = row(tmp_path, tensor(dtype=dtype, Max=high))
    assert (got["dtype"], got["saturated"]) == (short, saturated)


@pytest.mark.parametrize(
    ("shape", "read_as", "numel"),
    [([], [], 1), (None, [], 1), ([4, 0, 2], [4, 0, 2], 0), ([7, 3, 2, 5], [7, 3, 2, 5], 210)],
)
def test_shapes(tmp_path: Path, shape: Any, read_as: list[int], numel: int) -> None:
    got = row(tmp_path, tensor(shape=shape))
    assert (got["shape"], got["numel"]) == (read_as, numel)


def test_overflow_said_of_the_outputs_of_a_call(tmp_path: Path) -> None:
    unknown = tensor(Max=None, Min=None)
    assert row(tmp_path, unknown, is_nan=True)["has_nan"] is True
    assert row(tmp_path, unknown, is_nan=False)["has_nan"] is False
    assert row(tmp_path, unknown)["has_nan"] is None
    call = {"input_args": [unknown], "output": [], "is_nan": True}
    (given,) = read(tmp_path, text({"Torch.exp.0.forward": call})).tensors.to_pylist()
    assert given["has_nan"] is None


def test_operations_of_a_batch(tmp_path: Path) -> None:
    send, receive = (
        {"class_type": "torch.distributed.P2POp", "op": op, "tensor": PLAIN, "peer": 1}
        for op in ("isend", "irecv")
    )
    call = {"input_args": [[send, receive]], "output": [[send, receive]]}
    shard = read(tmp_path, text({"Distributed.batch_isend_irecv.0.forward": call}))
    roles = {r["slot"]: r["role"] for r in shard.tensors.to_pylist()}
    assert roles == {
        "input.0.0": "value", "input.0.1": "buffer",
        "output.0.0": "echo", "output.0.1": "value",
    }  # fmt: skip


def test_equal_numbers_of_other_types_are_other_arguments(tmp_path: Path) -> None:
    values = [1, 1.0, True, -0.0, 0.0, math.nan]
    calls = {f"Torch.add.{n}.forward": {"input_args": [value]} for n, value in enumerate(values)}
    args = read(tmp_path, text(calls)).calls.column("args").to_pylist()
    assert args == [f'{{"input.0":{v}}}' for v in ("1", "1.0", "true", "-0.0", "0.0", '"nan"')]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b'"\\ud800"', '"\\ud800"'),  # half a surrogate pair
        (b'"\xff"', '"\\ufffd"'),  # no UTF-8
        (b"[" * 300 + b"]" * 300, None),
        (b"123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_what_few_parsers_take(tmp_path: Path, written: bytes, said: str | None) -> None:
    calls = {"Torch.a.0.forward": {"input_args": ["HERE"], "output": [tensor(Max=math.inf)]}}
    shard = read(tmp_path, text(calls).replace(b'"HERE"', written))
    assert shard.damage == ""
    assert shard.calls.column("args").to_pylist() == [said and f'{{"input.0":{said}}}']
    assert shard.tensors.column("has_posinf").to_pylist() == [True]


def test_no_records(tmp_path: Path) -> None:
    shard = read(tmp_path, text({}))
    assert (len(shard.calls), len(shard.tensors)) == (0, 0)
    assert "holds no record" in shard.unfinished
