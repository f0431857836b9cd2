"""The numbers of a tensor beside those that float64 gives, by dtype and content."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from collectors.schema import FLOAT_LIMIT
from collectors.torch_stats import (
    Measured,
    Stats,
    _on_device,
    _plain,
    measure,
    read_back,
    short_dtype,
)

HALVES, WIDE = (torch.float16, torch.bfloat16), (torch.float32, torch.float64)
FLOATS = (*HALVES, *WIDE)
FLOAT8 = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
)
INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
COMPLEX = (torch.complex32, torch.complex64, torch.complex128)
BOUNDS = ("min", "max", "mean", "norm")
COUNTS = ("nan_count", "posinf_count", "neginf_count", "zero_count")
BAD = ("has_nan", "has_posinf", "has_neginf")


def host(tensor: Tensor) -> Stats:
    """Return what the host path says."""
    found = measure(tensor)
    assert isinstance(found, Measured)
    return found.stats


def device(tensor: Tensor) -> Stats:
    """Return what the path of a device says, for a tensor of the host."""
    (stats,) = read_back([_on_device(_plain(tensor))], [short_dtype(tensor.dtype)])
    return stats


PATHS: dict[str, Callable[[Tensor], Stats]] = {"host": host, "device": device}


def reference(tensor: Tensor) -> Stats:
    """Return the same in float64, with every digit of the sums."""
    pairs = torch.view_as_real(tensor.to(torch.complex128).resolve_conj())
    flat = (pairs if tensor.is_complex() else tensor.to(torch.float64)).flatten()
    finite = flat[flat.isfinite()]
    stats: Stats = {
        "nan_count": int(flat.isnan().sum()),
        "posinf_count": int((flat == math.inf).sum()),
        "neginf_count": int((flat == -math.inf).sum()),
        "zero_count": int((flat == 0).sum()),
    }
    stats |= {key: stats[key.replace("has_", "") + "_count"] > 0 for key in BAD}
    limit = FLOAT_LIMIT.get(short_dtype(tensor.dtype))
    stats["saturated"] = bool(limit and (finite.abs() == limit).any())
    if finite.numel():
        size = finite.abs().max().item() or 1.0
        scaled = finite / size
        stats |= {
            "min": finite.min().item(),
            "max": finite.max().item(),
            "mean": math.fsum(scaled.tolist()) / len(scaled) * size,
            "norm": math.sqrt(math.fsum((scaled * scaled).tolist())) * size,
        }
        if math.isinf(stats["norm"]):  # no float64 holds it
            stats["norm"] = None
    return stats


def assert_same(found: Stats, tensor: Tensor, digits: float = 1e-6) -> None:
    expected = reference(tensor)
    assert {key: found.get(key) for key in (*COUNTS, *BAD, "saturated", "min", "max")} == {
        key: expected.get(key) for key in (*COUNTS, *BAD, "saturated", "min", "max")
    }
    assert set(found) == set(expected)
    assert (found.get("norm") is None) == (expected.get("norm") is None)
    for key in [key for key in ("mean", "norm") if expected.get(key) is not None]:
        size = max(abs(expected["min"]), abs(expected["max"]))
        near = pytest.approx(expected[key], rel=digits, abs=size * digits)
        assert found[key] == near, (key, found[key])


def largest(dtype: torch.dtype, count: int) -> Tensor:
    return torch.full((count,), torch.finfo(dtype).max, dtype=dtype)


def tiny(dtype: torch.dtype, count: int) -> Tensor:
    smallest = torch.finfo(dtype).smallest_normal
    return torch.full((count,), smallest, dtype=dtype)


def mixed(dtype: torch.dtype, *values: float) -> Tensor:
    return torch.tensor(values).to(dtype)


NAN, INF = math.nan, math.inf
CONTENT: dict[str, Callable[[torch.dtype], Tensor]] = {
    "random": lambda dtype: torch.randn(3000, generator=torch.Generator().manual_seed(0)).to(dtype),
    "one": lambda dtype: mixed(dtype, -2),
    "0-d": lambda dtype: mixed(dtype, 1.5)[0],
    "zeros": lambda dtype: mixed(dtype, 0, -0.0, 0),
    "transposed": lambda dtype: mixed(dtype, *range(12)).view(3, 4).T,
    "every other": lambda dtype: mixed(dtype, *range(12))[1::2],
    "expanded": lambda dtype: mixed(dtype, 1, 2).expand(5, 2),
    "nan": lambda dtype: mixed(dtype, 1, NAN, -3),
    "all nan": lambda dtype: mixed(dtype, NAN, NAN),
    "infinity": lambda dtype: mixed(dtype, INF, 0, 2, INF),
    "minus infinity": lambda dtype: mixed(dtype, -INF, -2),
    "both infinities": lambda dtype: mixed(dtype, INF, -INF, 4, 0),
    "only infinities": lambda dtype: mixed(dtype, INF, -INF),
    "everything": lambda dtype: mixed(dtype, NAN, INF, -INF, 0, 1, -8),
    "largest": lambda dtype: largest(dtype, 1),
    "sum overflows": lambda dtype: largest(dtype, 3000),
    "sum cancels": lambda dtype: torch.cat([largest(dtype, 1500), -largest(dtype, 1500)]),
    "overflow beside nan": lambda dtype: torch.cat([largest(dtype, 9), mixed(dtype, NAN)]),
    "squares underflow": lambda dtype: tiny(dtype, 3000),
    "tiny beside large": lambda dtype: torch.cat([tiny(dtype, 2000), mixed(dtype, 3)]),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", FLOATS, ids=short_dtype)
@pytest.mark.parametrize("content", CONTENT)
def test_floats(content: str, dtype: torch.dtype, path: str) -> None:
    tensor = CONTENT[content](dtype)
    assert_same(PATHS[path](tensor), tensor)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", FLOATS, ids=short_dtype)
def test_denormals(dtype: torch.dtype, path: str) -> None:
    info = torch.finfo(dtype)
    tensor = torch.full((100,), info.smallest_normal * info.eps * 8, dtype=dtype)
    assert tensor.double().max() > 0
    assert_same(PATHS[path](tensor), tensor, 1e-2)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", FLOATS, ids=short_dtype)
def test_no_number_is_nan_or_infinite(dtype: torch.dtype, path: str) -> None:
    for make in CONTENT.values():
        stats = PATHS[path](make(dtype))
        kept = [stats[key] for key in BOUNDS if stats.get(key) is not None]
        assert all(math.isfinite(number) for number in kept)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", FLOATS, ids=short_dtype)
def test_saturated_is_the_largest_finite_value_and_nothing_below(
    dtype: torch.dtype, path: str
) -> None:
    limit = largest(dtype, 1)
    below = torch.nextafter(limit, torch.zeros_like(limit))
    assert FLOAT_LIMIT[short_dtype(dtype)] == limit.item()
    assert below.item() < limit.item()
    found = [PATHS[path](t)["saturated"] for t in (limit, -limit, below, limit * 2)]
    assert found == [True, True, False, False]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", FLOAT8, ids=short_dtype)
def test_floats_of_eight_bits(dtype: torch.dtype, path: str) -> None:
    for values in ([1, 0, -2], [0.5] * 3000, [torch.finfo(dtype).max] * 9, [1, NAN]):
        tensor = mixed(dtype, *values)
        assert_same(PATHS[path](tensor), tensor)


def test_a_scale_of_eight_bits() -> None:
    tensor = mixed(torch.float8_e8m0fnu, 1, 4, 2)
    assert_same(host(tensor), tensor)


@pytest.mark.parametrize("dtype", [*INTEGERS, *UNSIGNED], ids=short_dtype)
def test_integers(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    for values in ([0, 1, 3], [info.max, info.max, 0], [info.min, 5], [info.max] * 2000):
        tensor = torch.tensor(values, dtype=dtype)
        assert_same(host(tensor), tensor)


@pytest.mark.parametrize("path", PATHS)
def test_booleans(path: str) -> None:
    for tensor in (torch.tensor([True, False, True]), torch.zeros(3, dtype=torch.bool)):
        assert_same(PATHS[path](tensor), tensor)


@pytest.mark.parametrize("dtype", INTEGERS, ids=short_dtype)
def test_integers_of_a_device(dtype: torch.dtype) -> None:
    tensor = torch.tensor([0, 1, 100, 7], dtype=dtype)
    assert_same(device(tensor), tensor)


@pytest.mark.parametrize("path", PATHS)
def test_large_integers_keep_their_bounds(path: str) -> None:
    tensor = torch.tensor([2**24 + 1, 2**31 - 1])
    stats = PATHS[path](tensor)
    assert (stats["min"], stats["max"]) == (2**24 + 1, 2**31 - 1)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", COMPLEX, ids=short_dtype)
def test_complex_numbers_are_pairs(dtype: torch.dtype, path: str) -> None:
    plain = torch.tensor([3 + 4j, 0 - 1j]).to(dtype)
    odd = torch.tensor([complex(NAN, 1), complex(2, INF)]).to(dtype)
    for tensor in (plain, plain.conj(), odd):
        assert_same(PATHS[path](tensor), tensor)


def test_the_imaginary_part_of_a_conjugate_is_read_with_its_sign() -> None:
    stats = host(torch.tensor([1 + 2j]).conj().imag)
    assert (stats["min"], stats["max"]) == (-2, -2)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (5, 5, 0)])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.bool, torch.complex64])
def test_an_empty_tensor_has_no_numbers_and_nothing_bad(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    stats = host(torch.zeros(shape, dtype=dtype))
    assert stats == dict.fromkeys(BAD, False)


@pytest.mark.parametrize("path", PATHS)
def test_counts_are_exact_where_float32_is_not(path: str) -> None:
    tensor = torch.zeros(2**24 + 3, dtype=torch.float16)
    tensor[:2] = 1
    assert PATHS[path](tensor)["zero_count"] == 2**24 + 1


@pytest.mark.parametrize("path", PATHS)
def test_a_sum_of_many_keeps_its_digits(path: str) -> None:
    """One float32 sum of so many would lose the small ones."""
    tensor = torch.full((2**22,), 0.1)
    stats = PATHS[path](tensor)
    assert stats["mean"] == pytest.approx(tensor[0].item(), rel=1e-6)
    assert stats["norm"] == pytest.approx(tensor[0].item() * 2**11, rel=1e-6)


def test_numbers_of_many_tensors_come_back_in_their_order() -> None:
    tensors: list[Any] = [torch.full((n + 1,), float(n), dtype=FLOATS[n % 4]) for n in range(9)]
    tensors.append(torch.tensor([NAN, 1]))
    rows = read_back([_on_device(t) for t in tensors], [short_dtype(t.dtype) for t in tensors])
    for row, tensor in zip(rows, tensors, strict=True):
        assert_same(row, tensor)
    assert read_back([], []) == []


def test_what_did_not_change_is_not_measured_again() -> None:
    tensor = torch.tensor([1.0, 2.0, 3.0])
    before = measure(tensor)
    assert isinstance(before, Measured)
    assert measure(tensor, before) is before
    tensor[0] = -9
    assert measure(tensor, before) == measure(tensor) != before
