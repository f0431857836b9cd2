"""What a configuration means, and what is said of one that cannot be followed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from collectors import PrecisionDebugger
from collectors.config import ConfigError
from collectors.errors import CrossrankError

from .recording import Record, recording

INCUMBENT: dict[str, Any] = {
    "task": "statistics",
    "dump_path": "",
    "rank": [],
    "step": [0],
    "level": "L1",
    "seed": 1234,
    "is_deterministic": False,
    "enable_dataloader": False,
    "statistics": {
        "scope": [],
        "list": [],
        "data_mode": ["all"],
        "summary_mode": "statistics",
    },
}
"""The file of the incumbent's best practice; only the folder is ours."""


def config_file(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(INCUMBENT | {"dump_path": str(folder / "dump")} | changes))
    return path


def told(path: Path) -> list[str]:
    """Return the warnings of a debugger that reads this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrecisionDebugger(config_path=path)
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


def refusal(*args: Any, **kwargs: Any) -> str:
    """Return the sentence of the error that a configuration gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ConfigError) as raised:
            PrecisionDebugger(*args, **kwargs)
    assert isinstance(raised.value, CrossrankError)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_the_incumbents_file_is_followed_unchanged(tmp_path: Path) -> None:
    path = config_file(tmp_path)
    with pytest.warns(UserWarning, match="not honoured"):
        debugger = PrecisionDebugger(config_path=str(path))
    for _ in range(2):
        debugger.start()
        torch.ones(2)
        debugger.stop()
        debugger.step()
    assert [folder.name for folder in (tmp_path / "dump").glob("step=*")] == ["step=0"]
    assert Record(tmp_path / "dump").names == ["Torch.ones.0.forward"]
    run = json.loads((tmp_path / "dump" / "run.json").read_text())
    assert run["config"] == json.loads(path.read_text())
    assert (run["framework"], run["versions"]["torch"]) == ("pytorch", torch.__version__)


def test_one_warning_names_what_is_not_honoured(tmp_path: Path) -> None:
    (text,) = told(config_file(tmp_path))
    assert str(tmp_path / "config.json") in text
    listed = text.rpartition(": ")[2].split(", ")
    assert listed == ["enable_dataloader", "is_deterministic", "seed"]


def test_settings_of_the_task_that_stand_at_their_default_need_no_word(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    known = {key: INCUMBENT[key] for key in ("task", "rank", "step", "level", "statistics")}
    path.write_text(json.dumps(known | {"dump_path": str(tmp_path)}))
    assert told(path) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scope", ["Tensor.add.0", "Tensor.add.9"]),
        ("list", ["relu"]),
        ("data_mode", ["forward"]),
        ("summary_mode", "md5"),
    ],
)
def test_a_filter_that_is_not_followed_is_named(tmp_path: Path, key: str, value: Any) -> None:
    (text,) = told(config_file(tmp_path, statistics={key: value}))
    assert f"statistics.{key}" in text


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    text = refusal(config_path=tmp_path / "config.json")
    assert text == f"{tmp_path / 'config.json'} cannot be read: No such file or directory"


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    assert refusal(config_path=tmp_path).startswith(f"{tmp_path} cannot be read")


@pytest.mark.parametrize("content", [b'{"task": "statistics",', b"", b"\xff\xfe\x00{"])
def test_a_file_that_is_not_json(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert refusal(config_path=path).startswith(f"{path} is not JSON: ")


@pytest.mark.parametrize(
    ("content", "kind"), [("[]", "list"), ("3", "int"), ("null", "NoneType"), ('"a"', "str")]
)
def test_json_that_is_no_object(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    assert refusal(config_path=path) == f"{path}: expected an object, {{...}}, got {kind}"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("task", "tensor", "statistics"),
        ("task", "statistic", "statistics"),
        ("task", ["statistics"], "statistics"),
        ("level", "L0", "L1"),
        ("level", 1, "L1"),
    ],
)
def test_an_unknown_choice_is_named_with_what_there_is(
    tmp_path: Path, key: str, value: Any, expected: str
) -> None:
    path = config_file(tmp_path, **{key: value})
    text = refusal(config_path=path)
    assert text.startswith(f"{path}: {key} {value!r}")
    assert text.endswith(f"expected {expected}")


@pytest.mark.parametrize("missing", ["", None])
def test_without_a_folder_nothing_can_be_collected(tmp_path: Path, missing: Any) -> None:
    path = config_file(tmp_path, dump_path=missing)
    assert refusal(config_path=path).startswith(f"{path}: dump_path is missing")
    assert refusal().startswith("the arguments: dump_path is missing")


@pytest.mark.parametrize("value", [3, ["/tmp"], {"a": 1}])
def test_a_folder_that_is_no_text(tmp_path: Path, value: Any) -> None:
    path = config_file(tmp_path, dump_path=value)
    assert "dump_path" in refusal(config_path=path)


@pytest.mark.parametrize(
    "value", [["a"], "x-3", [1.5], ["-1"], [-1], [""], {"0": 1}, [[0]], ["3-"]]
)
@pytest.mark.parametrize("key", ["step", "rank"])
def test_a_number_that_is_none(tmp_path: Path, key: str, value: Any) -> None:
    path = config_file(tmp_path, **{key: value})
    text = refusal(config_path=path)
    assert text.startswith(f"{path}: {key} ")
    assert text.endswith('expected a number, or "4-6"')


@pytest.mark.parametrize("value", ["6-4", ["6-4"]])
def test_a_range_that_is_empty_is_not_every_step(tmp_path: Path, value: Any) -> None:
    assert "6-4" in refusal(dump_path=tmp_path, step=value)


@pytest.mark.parametrize("value", [True, [True], "²"])
def test_what_only_looks_like_a_number_is_none(tmp_path: Path, value: Any) -> None:
    assert refusal(dump_path=tmp_path, step=value).startswith("the arguments: step ")


@pytest.mark.parametrize(
    ("step", "kept"),
    [
        ([], range(8)),
        ([0, 2], [0, 2]),
        (["4-6"], [4, 5, 6]),
        ("4-6", [4, 5, 6]),
        (["3"], [3]),
        ("3", [3]),
        (3, [3]),
        (0, [0]),
        ([1, "3", "5-6"], [1, 3, 5, 6]),
    ],
)
def test_only_the_steps_that_were_asked_for(tmp_path: Path, step: Any, kept: Any) -> None:
    debugger = PrecisionDebugger(dump_path=tmp_path, step=step)
    for _ in range(8):
        debugger.start()
        torch.ones(1)
        debugger.stop()
        debugger.step()
    steps = sorted(int(folder.name[5:]) for folder in tmp_path.glob("step=*"))
    assert steps == list(kept)


@pytest.mark.parametrize(
    ("rank", "kept"), [([], [0, 1, 5]), ([1], [1]), (["0-1"], [0, 1]), ("5", [5]), (0, [0])]
)
def test_only_the_ranks_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: Any, kept: list[int]
) -> None:
    for own in (0, 1, 5):
        monkeypatch.setenv("RANK", str(own))
        with recording(tmp_path, rank=rank):
            torch.ones(1)
    ranks = sorted(int(folder.name[5:]) for folder in tmp_path.glob("step=0/rank=*"))
    assert ranks == kept


def test_arguments_stand_above_the_file(tmp_path: Path) -> None:
    path = config_file(tmp_path, step=[5], rank=[7], task="tensor")
    with pytest.warns(UserWarning, match="not honoured"):
        debugger = PrecisionDebugger(
            path, task="statistics", dump_path=tmp_path / "b", step=0, rank=[0]
        )
    debugger.start()
    torch.ones(1)
    debugger.stop()
    debugger.step()
    assert Record(tmp_path / "b").names == ["Torch.ones.0.forward"]
    assert not (tmp_path / "dump").exists()


def test_a_folder_of_the_dump_that_is_a_file_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text("")
    assert str(tmp_path / "dump") in refusal(dump_path=tmp_path / "dump")
