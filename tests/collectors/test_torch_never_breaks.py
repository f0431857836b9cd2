"""Whatever the collector cannot take, the training goes on as if it were not there."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from collectors import PrecisionDebugger
from pipeline.shards import open_dump

from .recording import Record, recording, run_script

JAGGED = {"layout": torch.jagged}


class Shy(torch.Tensor):
    """A tensor that does not tell its shape."""

    @property
    def shape(self) -> Any:
        raise LookupError("no shape")


def nested(**layout: Any) -> Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], **layout)


def in_inference_mode() -> Tensor:
    weight = nn.Parameter(torch.ones(2))
    with torch.inference_mode():
        return weight * 2


def viewed_as(dtype: torch.dtype) -> Callable[[], Tensor]:
    return lambda: torch.zeros(16, dtype=torch.uint8).view(dtype)


ODD: dict[str, Callable[[], Any]] = {
    "inference_mode": in_inference_mode,
    "vmap": lambda: torch.vmap(lambda x: x * 2 + 1)(torch.ones(3, 2)),
    "func.grad": lambda: torch.func.grad(lambda x: (x * x).sum())(torch.ones(3)),
    "jvp": lambda: torch.func.jvp(torch.sin, (torch.ones(3),), (torch.ones(3),)),
    "nested": lambda: nested() * 2,
    "jagged": lambda: nested(**JAGGED) * 2,
    "mkldnn": lambda: torch.ones(3, 3).to_mkldnn().to_dense(),
    "sparse": lambda: torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 3)),
    "csr": lambda: torch.eye(3).to_sparse_csr() @ torch.ones(3, 3),
    "meta": lambda: torch.ones(3, device="meta") * 2,
    "complex": lambda: torch.ones(3, dtype=torch.complex64).conj().imag * 2,
    "uint16": viewed_as(torch.uint16),
    "uint64": viewed_as(torch.uint64),
    "int4": viewed_as(torch.int4),
    "bits8": viewed_as(torch.bits8),
    "qint8": viewed_as(torch.qint8),
    "complex32": viewed_as(torch.complex32),
    "float4": viewed_as(torch.float4_e2m1fn_x2),
    "float8": viewed_as(torch.float8_e4m3fn),
    "float8_scale": viewed_as(torch.float8_e8m0fnu),
    "packed": lambda: nn.LSTM(2, 3)(
        nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2, 2), torch.tensor([2, 1]))
    ),
    "numpy": lambda: torch.from_numpy(torch.ones(3).numpy()) + 1,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD)
def test_odd_tensors_do_not_stop_the_record(tmp_path: Path, kind: str) -> None:
    with warnings.catch_warnings(record=True) as told, recording(tmp_path):
        ODD[kind]()
        torch.arange(3)
    assert [str(one.message) for one in told if "crossrank" in str(one.message)] == []
    assert Record(tmp_path).names[-1] == "Torch.arange.0.forward"


def test_an_error_of_ours_is_told_once_and_changes_no_result(tmp_path: Path) -> None:
    def train() -> list[Tensor]:
        weight = torch.ones(3, requires_grad=True)
        odd = torch.full((3,), 2.0).as_subclass(Shy)
        ((weight * odd).sum() * 3).as_subclass(Tensor).backward()
        assert weight.grad is not None
        return [weight.detach(), weight.grad]

    expected = train()
    with warnings.catch_warnings(record=True) as told, recording(tmp_path):
        torch.zeros(1)
        results = train()
    assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True))
    assert [one.category for one in told] == [RuntimeWarning]
    assert "LookupError: no shape" in str(told[0].message)
    assert Record(tmp_path).names[:1] == ["Torch.zeros.0.forward"]


def test_warnings_as_errors_do_not_reach_the_training(tmp_path: Path) -> None:
    with warnings.catch_warnings(), recording(tmp_path):
        warnings.simplefilter("error")
        odd = torch.ones(3).as_subclass(Shy)
        assert torch.equal((odd + 1).as_subclass(Tensor), torch.full((3,), 2.0))


def test_a_dump_that_disappears_does_not_stop_the_training(tmp_path: Path) -> None:
    debugger = PrecisionDebugger(dump_path=tmp_path / "dump")
    debugger.start()
    torch.ones(3)
    shutil.rmtree(tmp_path / "dump")
    debugger.stop()
    with pytest.warns(RuntimeWarning, match="crossrank"):
        debugger.step()


def test_a_full_disk_does_not_stop_the_training(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    debugger = PrecisionDebugger(dump_path=tmp_path)
    debugger.start()
    torch.ones(3)
    debugger.stop()
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        with pytest.warns(RuntimeWarning, match="crossrank"):
            debugger.step()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert open_dump(tmp_path).shards[0].rank == 0


def test_text_that_is_no_unicode_does_not_stop_the_training(tmp_path: Path) -> None:
    code = compile("torch.ones(2)", "/tmp/caf\udce9.py", "exec")
    with recording(tmp_path):
        exec(code, {"torch": torch})
    assert Record(tmp_path).names == ["Torch.ones.0.forward"]


def test_an_error_of_the_op_reaches_the_user(tmp_path: Path) -> None:
    with recording(tmp_path):
        with pytest.raises(RuntimeError, match="size of tensor"):
            torch.add(torch.ones(2), torch.ones(3))
        torch.ones(1)
    record = Record(tmp_path)
    assert record.call("Torch.add")["state"] == "raised"
    assert record.call("Torch.add").slots("") == ["input.0", "input.1"]
    assert record.call("Torch.ones.2.forward")["state"] == "ok"


def test_an_error_in_a_function_of_autograd_is_recorded(tmp_path: Path) -> None:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            raise ZeroDivisionError

    with recording(tmp_path), pytest.raises(ZeroDivisionError):
        Broken.apply(torch.ones(2))
    assert Record(tmp_path).call("Function.Broken")["state"] == "raised"


def test_an_update_that_raises_is_recorded_and_does_not_hide_what_follows(tmp_path: Path) -> None:
    class Broken(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            raise MemoryError

    weight = nn.Parameter(torch.ones(2))
    optimizer = Broken([weight], lr=0.1)
    with recording(tmp_path):
        with pytest.raises(MemoryError):
            optimizer.step()
        torch.ones(1)
    assert Record(tmp_path).names[-1] == "Torch.ones.0.forward"


def test_clipping_that_raises_is_recorded(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), torch.nan)
    with recording(tmp_path), pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)
    record = Record(tmp_path)
    assert record.call("Optimizer.clip_grad_norm_.0.clip")["state"] == "raised"


def test_assertions_on_identity_hold(tmp_path: Path) -> None:
    """A model may check that a function is the very one of PyTorch."""
    names = [(F, "gelu"), (torch, "add"), (torch.Tensor, "add"), (torch.linalg, "norm")]
    taken = [getattr(place, name) for place, name in names]
    with recording(tmp_path):
        for (place, name), function in zip(names, taken, strict=True):
            assert getattr(place, name) is function


def test_a_compiled_function_still_runs(tmp_path: Path) -> None:
    """The collector's own code is not compiled with it."""
    process = run_script(f"""
    import torch
    f = torch.compile(lambda x: (x * 2).sin().sum(), backend="eager")
    debugger = PrecisionDebugger(dump_path={str(tmp_path)!r})
    debugger.start()
    assert torch.equal(f(torch.ones(3)), (torch.ones(3) * 2).sin().sum())
    debugger.stop()
    debugger.step()
    """)
    assert process.returncode == 0
    assert process.stderr is not None
    assert "collectors/" not in (told := process.stderr.read()), told


class Doubling(TorchFunctionMode):
    """A mode of the user's that changes what one function gives."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ones else result


@pytest.mark.parametrize("started", ["inside", "outside", "before", "after"])
@pytest.mark.parametrize("block", [lambda: torch.device("meta"), Doubling])
def test_a_mode_of_the_user_stays_right(
    tmp_path: Path, started: str, block: Callable[[], Any]
) -> None:
    """The record starts, or ends, inside of a `with` of the user's, or around it."""
    debugger = PrecisionDebugger(dump_path=tmp_path)
    if started in ("outside", "before"):
        debugger.start()
    with block():
        if started in ("inside", "after"):
            debugger.start()
        x = torch.ones(2)
        assert x.is_meta or torch.equal(x, torch.full((2,), 2.0))
        if started in ("inside", "before"):
            debugger.stop()
        y = torch.ones(2)
        assert y.is_meta or torch.equal(y, torch.full((2,), 2.0))
    assert torch.equal(torch.ones(2), torch.tensor([1.0, 1.0]))
    debugger.stop()
    assert _get_current_function_mode_stack() == []
    debugger.step()
    assert Record(tmp_path).names[0] == "Torch.ones.0.forward"


def test_a_default_device_can_be_set_before_and_changed_while_recording(tmp_path: Path) -> None:
    torch.set_default_device("meta")
    try:
        with recording(tmp_path):
            assert torch.ones(2).is_meta
            torch.set_default_device("cpu")
            assert not torch.ones(2).is_meta
    finally:
        torch.set_default_device(None)
    assert len(Record(tmp_path).names) == 2


def test_a_second_debugger_says_that_it_does_not_record(tmp_path: Path) -> None:
    with recording(tmp_path / "a"):
        other = PrecisionDebugger(dump_path=tmp_path / "b")
        with pytest.warns(UserWarning, match="another PrecisionDebugger"):
            other.start()
        torch.ones(1)
        other.stop()
        other.step()
        torch.ones(1)
    assert len(Record(tmp_path / "a").names) == 2
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("end", ["raise RuntimeError", "os.kill(os.getpid(), 15)", "sys.exit(1)"])
def test_a_run_that_ends_early_leaves_its_calls(tmp_path: Path, end: str) -> None:
    process = run_script(f"""
    debugger = PrecisionDebugger(dump_path={str(tmp_path)!r})
    debugger.start()
    torch.ones(3)
    {end}
    """)
    assert process.returncode in (1, -signal.SIGTERM)
    assert Record(tmp_path).names == ["Torch.ones.0.forward"]


def test_a_forked_worker_neither_records_nor_writes(tmp_path: Path) -> None:
    """A worker of a DataLoader inherits all; its calls must not stand among those of the rank."""
    with recording(tmp_path):
        many = [torch.zeros(1)] * 1000
        child = os.fork()
        if child == 0:
            for _ in range(210):
                torch.stack(many)
            os._exit(0)
        os.waitpid(child, 0)
        assert not list(tmp_path.rglob("calls-*"))
        torch.ones(1)
    assert Record(tmp_path).names == ["Torch.zeros.0.forward", "Torch.ones.0.forward"]


def test_a_thread_that_still_runs_after_stop_is_left_alone(tmp_path: Path) -> None:
    go, results = threading.Event(), []

    def work() -> None:
        go.wait(30)
        results.append(torch.ones(2).sum().item())

    thread = threading.Thread(target=work)
    with recording(tmp_path):
        thread.start()
    go.set()
    thread.join()
    assert results == [2.0]
    assert Record(tmp_path).names == []
