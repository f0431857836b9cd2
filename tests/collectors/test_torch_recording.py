"""Which calls are on record, under which name, with which values."""

from __future__ import annotations

import json
import operator
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .recording import Record, record, recording


def made(dump: Path, work: Callable[[], Any]) -> list[tuple[str, list[float]]]:
    """Return name and the maxima of the results of every call in `work`."""
    found = record(dump, work)
    return [
        (call["name"].removesuffix(".0.forward"), [call.tensors[s]["max"] for s in results])
        for call in found.calls
        if (results := call.slots("output"))
    ]


X, MASK = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])

OPERATORS: dict[str, tuple[Callable[[], Any], str, float]] = {
    "x + 1": (lambda: X + 1, "add", 4),
    "1 + x": (lambda: 1 + X, "add", 4),
    "x - 1": (lambda: X - 1, "sub", 2),
    "1 - x": (lambda: 1 - X, "__rsub__", 0),
    "x * x": (lambda: X * X, "mul", 9),
    "x / 2": (lambda: X / 2, "div", 1.5),
    "6 / x": (lambda: 6 / X, "__rdiv__", 6),
    "x // 2": (lambda: X // 2, "__floordiv__", 1),
    "7 // x": (lambda: 7 // X, "__rfloordiv__", 7),
    "x % 2": (lambda: X % 2, "remainder", 1),
    "5 % x": (lambda: 5 % X, "__rmod__", 2),
    "x ** 2": (lambda: X**2, "pow", 9),
    "2 ** x": (lambda: 2**X, "__rpow__", 8),
    "x @ x": (lambda: X @ X, "matmul", 14),
    "-x": (lambda: -X, "neg", -1),
    "abs(x)": (lambda: abs(X), "abs", 3),
    "x > 2": (lambda: X > 2, "gt", 1),
    "2 > x": (lambda: 2 > X, "lt", 1),  # noqa: SIM300
    "x == x": (lambda: X == X, "eq", 1),
    "~mask": (lambda: ~MASK, "bitwise_not", 1),
    "mask & mask": (lambda: MASK & MASK, "__and__", 1),
}


@pytest.mark.parametrize("code", OPERATORS)
def test_an_operator_is_one_call(tmp_path: Path, code: str) -> None:
    work, name, largest = OPERATORS[code]
    ((found, results),) = made(tmp_path, work)
    assert found in (f"Tensor.{name}", f"Tensor.__{name}__", "Tensor.__invert__")
    assert results == [largest]


IN_PLACE = {
    "+=": (operator.iadd, "add_", 5),
    "-=": (operator.isub, "sub_", 1),
    "*=": (operator.imul, "mul_", 6),
    "/=": (operator.itruediv, "div_", 1.5),
    "**=": (operator.ipow, "pow_", 9),
}


@pytest.mark.parametrize("code", IN_PLACE)
def test_an_operator_in_place_writes_what_it_read(tmp_path: Path, code: str) -> None:
    work, name, largest = IN_PLACE[code]
    x = X.clone()
    call = record(tmp_path, lambda: work(x, 2)).call(f"Tensor.{name}")
    assert (call.tensors["input.0"]["max"], call.tensors["output.0"]["max"]) == (3, largest)
    assert call.tensors["input.0"]["value_id"] != call.tensors["output.0"]["value_id"]


def test_indexing_reads_and_writes(tmp_path: Path) -> None:
    def work() -> None:
        x = X.clone()
        torch.positive(x[MASK])
        x[1:] = 7.0
        x[0] += 8
        torch.positive(x)

    found = record(tmp_path, work)
    read = found.call("Tensor.__getitem__").tensors
    assert (read["input.1"]["dtype"], read["output.0"]["shape"]) == ("bool", [2])
    written = found.call("Tensor.__setitem__")
    (result,) = written.slots("output")
    assert written.tensors[result]["max"] == 7
    assert written.tensors["input.0"]["max"] == 3
    assert json.loads(written["args"])["input.2"] == {"type": "float", "value": 7.0}
    assert found.call("Torch.positive.1.forward").tensors["input.0"]["max"] == 9


FACTORIES: dict[str, Callable[[], Tensor]] = {
    "Torch.randn": lambda: torch.randn(2),
    "Torch.rand": lambda: torch.rand(2),
    "Torch.rand_like": lambda: torch.rand_like(X),
    "Torch.randint": lambda: torch.randint(0, 5, (3,)),
    "Torch.randperm": lambda: torch.randperm(3),
    "Torch.bernoulli": lambda: torch.bernoulli(X / 3),
    "Torch.tensor": lambda: torch.tensor([1.0, torch.nan]),
    "Torch.as_tensor": lambda: torch.as_tensor([1.0]),
    "Torch.full": lambda: torch.full((2,), torch.inf),
    "Torch.arange": lambda: torch.arange(3.0),
    "Torch.linspace": lambda: torch.linspace(0, 1, 3),
    "Torch.eye": lambda: torch.eye(2),
    "Torch.zeros_like": lambda: torch.zeros_like(X),
    "Tensor.new_ones": lambda: X.new_ones(2),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_made_what_is_read_next(tmp_path: Path, name: str) -> None:
    found = record(tmp_path, lambda: torch.positive(FACTORIES[name]()))
    assert found.producer("Torch.positive") == (f"{name}.0.forward", "output.0")
    assert found.call(name).tensors["output.0"]["role"] == "value"


FUNCTIONS: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "Torch.clamp": (lambda: torch.clamp(X, 1, 2), [2]),
    "Tensor.clamp": (lambda: X.clamp(max=1), [1]),
    "Torch.where": (lambda: torch.where(MASK, X, X), [3]),
    "Tensor.masked_fill": (lambda: X.masked_fill(MASK, 9), [9]),
    "Tensor.clone": (X.clone, [3]),
    "Tensor.to": (lambda: X.to(torch.float64), [3]),
    "Torch.cat": (lambda: torch.cat([X, X]), [3]),
    "Torch.einsum": (lambda: torch.einsum("i,i->", X, X), [14]),
    "Torch.sort": (lambda: torch.sort(X), [3, 2]),
    "Torch.split": (lambda: torch.split(X, 2), [2, 3]),
    "Linalg.norm": (lambda: torch.linalg.norm(X[:1]), [1]),
    "Linalg.svd": (lambda: torch.linalg.svd(torch.ones(1, 1) * 2), [1, 2, 1]),
    "Fft.fft": (lambda: torch.fft.fft(X), [6]),
    "Fft.irfft": (lambda: torch.fft.irfft(torch.fft.rfft(X), 3), [pytest.approx(3)]),
    "Special.expit": (lambda: torch.special.expit(torch.zeros(1)), [0.5]),
    "Special.log_softmax": (lambda: torch.special.log_softmax(torch.ones(1), 0), [0]),
    "Functional.gelu": (lambda: F.gelu(torch.zeros(1)), [0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_on_record_with_its_results(tmp_path: Path, name: str) -> None:
    work, largest = FUNCTIONS[name]
    calls = made(tmp_path, work)
    assert calls[-1] == (name, largest)


class Doubled(torch.autograd.Function):
    """Twice the first argument; forward and backward are Python."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, times: int) -> Tensor:
        ctx.times = times
        return x * times

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return torch.mul(gradients[0], ctx.times), None


def test_a_function_of_autograd_and_what_it_runs_in_python(tmp_path: Path) -> None:
    x = torch.ones(2, requires_grad=True)
    found = record(tmp_path, lambda: torch.positive(Doubled.apply(x, 2)).sum().backward())
    forward, backward = (found.call(f"Function.Doubled.0.{way}") for way in ("forward", "backward"))
    assert forward.tensors["output.0"]["max"] == 2
    assert json.loads(forward["args"]) == {"input.1": {"type": "int", "value": 2}}
    assert found.producer("Torch.positive") == ("Tensor.mul.0.forward", "output.0")
    assert backward.tensors["input.0"]["max"] == 1
    assert backward.tensors["output.0"]["max"] == 2
    inside = found.call("Torch.mul")
    assert inside["phase"] == "backward"
    assert found.producer("Torch.mul") == ("Tensor.sum.0.backward", "output.0")
    assert backward.tensors["inner.output.0"]["producer_seq"] == inside["seq"]


def test_what_a_call_runs_inside_is_no_call_of_its_own(tmp_path: Path) -> None:
    def work() -> None:
        F.cross_entropy(X, torch.tensor(1))
        torch.einsum("i,i->", X, X)
        F.interpolate(X.view(1, 1, 3), 6)

    assert [call["api"] for call in record(tmp_path, work).calls] == [
        "tensor",
        "cross_entropy",
        "einsum",
        "view",
        "interpolate",
    ]


class Own(threading.Thread):
    """A thread with a `run` of its own."""

    def run(self) -> None:
        X.sin()


def in_a_thread() -> None:
    thread = threading.Thread(target=X.sin)
    thread.start()
    thread.join()


def in_a_thread_of_its_own() -> None:
    thread = Own()
    thread.start()
    thread.join()


def in_a_timer() -> None:
    timer = threading.Timer(0, X.sin)
    timer.start()
    timer.join()


def in_a_new_pool() -> None:
    with ThreadPool(1) as pool:
        pool.apply(X.sin)


def in_a_new_executor() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(X.sin).result()


THREADS = [in_a_thread, in_a_thread_of_its_own, in_a_timer, in_a_new_pool, in_a_new_executor]


@pytest.mark.parametrize("work", THREADS, ids=lambda work: work.__name__)
def test_threads_that_start_while_recording_are_recorded(
    tmp_path: Path, work: Callable[[], None]
) -> None:
    assert record(tmp_path, work).names == ["Tensor.sin.0.forward"]


def test_an_executor_that_ran_before_is_recorded(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        found = record(tmp_path, lambda: pool.submit(X.sin).result())
        pool.submit(X.cos).result()
    assert found.names == ["Tensor.sin.0.forward"]


def test_what_an_out_argument_held_before_is_not_read(tmp_path: Path) -> None:
    values, places = torch.full((3,), torch.nan), torch.zeros(3, dtype=torch.int64)
    call = record(tmp_path, lambda: torch.sort(X, out=(values, places))).call("Torch.sort")
    roles = {slot: call.tensors[slot]["role"] for slot in call.slots("input")}
    assert roles == {"input.0": "value", "input.out.0": "buffer", "input.out.1": "buffer"}
    assert [call.tensors[slot]["max"] for slot in call.slots("output")] == [3, 2]


def test_the_module_is_the_innermost_one_that_has_a_name(tmp_path: Path) -> None:
    model = nn.ModuleDict({"layers": nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU()))})
    found = record(tmp_path, lambda: F.relu(model["layers"](X)), model)
    assert [call["module"] for call in found.calls] == ["layers.0", "layers.1.0", None]


def test_arguments_that_are_no_tensors_are_strict_json(tmp_path: Path) -> None:
    def work() -> None:
        torch.clamp(X, min=-torch.inf, max=torch.nan)
        X.sum(dim=(0,), keepdim=True, dtype=torch.float64)

    calls = record(tmp_path, work).calls
    first, second = (json.loads(call["args"], parse_constant=pytest.fail) for call in calls)
    assert first == {
        "input.min": {"type": "float", "value": "-inf"},
        "input.max": {"type": "float", "value": "nan"},
    }
    assert second["input.dim.0"] == {"type": "int", "value": 0}
    assert second["input.keepdim"] == {"type": "bool", "value": True}
    assert second["input.dtype"] == {"type": "torch.dtype", "value": "torch.float64"}


def test_a_call_that_raises_is_on_record_and_its_exception_is_the_users(tmp_path: Path) -> None:
    with recording(tmp_path), pytest.raises(IndexError, match="out of range") as raised:
        X.sum(dim=5)
    frames = [str(entry.path) for entry in raised.traceback]
    assert frames[0] == __file__
    (call,) = Record(tmp_path).calls
    assert (call["state"], call["kind"], list(call.tensors)) == ("raised", "compute", ["input.0"])
    assert "test_torch_recording.py" in call["stack"].splitlines()[0]
