"""Statistics of one tensor: what it holds, accumulated wider than its dtype.

On the host they are numbers at once. On a device nothing is read back: a small tensor of numbers
stays there until `read_back` brings those of many tensors over in one copy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from .schema import FLOAT_LIMIT

Stats = dict[str, Any]
"""Columns of `tensors`: max, min, mean, norm over the finite elements; counts; saturated."""

MEASURED = (
    "min", "max", "scale", "sum", "norm", "nan_count", "posinf_count", "neginf_count",
    "zero_count", "finite",
)  # fmt: skip
"""What is computed on a device, in this order; sum and norm are divided by the scale."""

SPARSE = {
    torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc,
}  # fmt: skip

WIDE_DEVICES = {"cpu", "cuda", "xpu"}
"""Devices that compute in float64; the sums of others are in float32."""

BLOCK = 1024
"""Elements whose squares are added up in float32."""

SMALL_SQUARES = 1e-18
"""A float32 norm below this may have lost squares to underflow."""

WHOLE_NUMBERS = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    *(getattr(torch, name) for name in ("uint16", "uint32", "uint64") if hasattr(torch, name)),
}  # fmt: skip


def short_dtype(dtype: torch.dtype) -> str:
    """Return `float32` for torch.float32."""
    return str(dtype).rpartition(".")[2]


class Measured(NamedTuple):
    """The statistics of a tensor on the host.

    Args:
        stats: the columns.
        total: the sum of all elements, by which a later look knows it again; None: it cannot.
    """

    stats: Stats
    total: float | None = None


def measure(tensor: torch.Tensor, before: Measured | None = None) -> Measured | torch.Tensor:
    """Return the statistics of a tensor, or for one on a device the numbers for `read_back`.

    Empty: no numbers, and nothing bad. What holds no values here (meta, fake, sparse, quantized,
    inside of a function transform): no columns at all, not recorded.

    Args:
        tensor: any.
        before: what was measured of this very tensor; taken again when the sum is still the same.
    """
    if not _readable(tensor):
        return Measured({})
    if tensor.numel() == 0:
        return Measured({"has_nan": False, "has_posinf": False, "has_neginf": False})
    plain = _plain(tensor.detach())
    if plain.numel() == 0:  # a sparse tensor that stores nothing
        return Measured({"has_nan": False, "has_posinf": False, "has_neginf": False})
    if plain.device.type != "cpu":
        return _on_device(plain)
    if not plain.is_floating_point():
        return Measured(_finished(_integers(plain), short_dtype(tensor.dtype)))
    total = plain.sum(dtype=_wide(plain)).item()
    if before and before.total == total:
        return before
    stats = _floats(plain, total) if math.isfinite(total) else _with_extremes(plain)
    return Measured(
        _finished(stats, short_dtype(tensor.dtype)), total if math.isfinite(total) else None
    )


def read_back(measured: Sequence[torch.Tensor], dtypes: Sequence[str]) -> list[Stats]:
    """Return the statistics of many tensors, in one copy to the host for each device.

    Args:
        measured: what `measure` gave for tensors on a device.
        dtypes: of these tensors, in the short form.
    """
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for place, numbers in enumerate(measured):
        kinds.setdefault((numbers.device, numbers.dtype), []).append(place)
    found: list[Stats] = [{} for _ in measured]
    for places in kinds.values():
        rows = torch.stack([measured[place] for place in places]).cpu().tolist()
        for place, row in zip(places, rows):
            found[place] = _from_numbers(row, dtypes[place])
    return found


def _from_numbers(row: Sequence[float], dtype: str) -> Stats:
    stats: Stats = dict(zip(MEASURED, row))
    total, scale, finite = stats.pop("sum"), stats.pop("scale"), int(stats.pop("finite"))
    counts = {key: int(value) for key, value in stats.items() if key.endswith("_count")}
    wide = {"norm": stats["norm"] * scale, "mean": total / finite * scale if finite else None}
    return _finished({**stats, **counts, **wide}, dtype)


def _readable(tensor: torch.Tensor) -> bool:
    if tensor.layout not in SPARSE and tensor.layout != torch.strided:
        return False
    if tensor.is_nested or tensor.device.type == "meta":
        return False
    if not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype in WHOLE_NUMBERS):
        return False
    if str(tensor.dtype).startswith("torch.float4"):
        return False
    if type(tensor) is torch.Tensor and torch._C._functorch.maybe_current_level() is None:
        return True
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return type(tensor).__name__ != "FakeTensor" and not wrapped


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout in SPARSE:  # what is not stored is 0
        tensor = tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype == torch.bool:
        return tensor.view(torch.uint8)
    if tensor.is_floating_point() and tensor.dtype.itemsize == 1:  # float8
        return tensor.float()
    return tensor


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _floats(tensor: torch.Tensor, total: float) -> Stats:
    """Return the statistics of a tensor whose elements are all finite."""
    low, high = (bound.item() for bound in torch.aminmax(tensor))
    mean, norm = total / tensor.numel(), _norm(tensor, _wide(tensor))
    largest = max(abs(low), abs(high))
    if not (math.isfinite(total) and math.isfinite(norm)) or (largest and norm < SMALL_SQUARES):
        scaled = tensor.double() / largest  # squares or sum leave the range
        mean = scaled.mean().item() * largest
        norm = torch.linalg.vector_norm(scaled).item() * largest
    return {
        "min": low,
        "max": high,
        "mean": mean,
        "norm": norm,
        "nan_count": 0,
        "posinf_count": 0,
        "neginf_count": 0,
        "zero_count": tensor.numel() - int(torch.count_nonzero(tensor)),
    }


def _norm(tensor: torch.Tensor, wide: torch.dtype) -> float:
    """Return the L2 norm, added up in blocks: one float32 sum over all loses digits."""
    flat = tensor.reshape(-1)
    whole = flat.numel() // BLOCK * BLOCK
    rest = torch.linalg.vector_norm(flat[whole:], dtype=wide).item()
    if not whole:
        return float(rest)
    blocks = torch.linalg.vector_norm(flat[:whole].view(-1, BLOCK), dim=1, dtype=wide)
    return math.hypot(torch.linalg.vector_norm(blocks, dtype=torch.float64).item(), rest)


def _with_extremes(tensor: torch.Tensor) -> Stats:
    """Return the statistics of a tensor that holds NaN or infinities, or whose sum overflows."""
    finite = tensor[torch.isfinite(tensor)]
    if finite.numel() == tensor.numel():
        return _floats(tensor, math.inf)
    stats = _floats(finite, math.inf) if finite.numel() else {"zero_count": 0}
    return {
        **stats,
        "nan_count": int(torch.isnan(tensor).sum()),
        "posinf_count": int(torch.isposinf(tensor).sum()),
        "neginf_count": int(torch.isneginf(tensor).sum()),
    }


def _integers(tensor: torch.Tensor) -> Stats:
    wide = tensor.double()
    low, high = (bound.item() for bound in torch.aminmax(wide))
    return {
        "min": low,
        "max": high,
        "mean": wide.mean().item(),
        "norm": torch.linalg.vector_norm(wide).item(),
        "nan_count": 0,
        "posinf_count": 0,
        "neginf_count": 0,
        "zero_count": int((wide == 0).sum()),
    }


def _on_device(tensor: torch.Tensor) -> torch.Tensor:
    """Return MEASURED, on the tensor's device: copies of its own dtype are the largest made."""
    wide = torch.float64 if tensor.device.type in WIDE_DEVICES else torch.float32
    finite = torch.isfinite(tensor)
    zero = torch.zeros((), dtype=tensor.dtype, device=tensor.device)
    kept = torch.where(finite, tensor, zero)
    low, high = _bounds(tensor, finite)
    scale = torch.ones((), dtype=wide, device=tensor.device)
    if tensor.dtype == torch.float64 or wide == torch.float32:  # squares or sum may leave the range
        scale = kept.abs().amax().to(wide).clamp_min(torch.finfo(wide).tiny)
        kept = kept.to(wide) / scale
    numbers = [
        low,
        high,
        scale,
        kept.sum(dtype=wide),
        torch.linalg.vector_norm(kept if kept.is_floating_point() else kept.to(wide), dtype=wide),
        torch.isnan(tensor).sum(),
        (tensor == math.inf).sum(),
        (tensor == -math.inf).sum(),
        (tensor == 0).sum(),
        finite.sum(),
    ]
    return torch.stack([number.to(wide) for number in numbers])


def _bounds(tensor: torch.Tensor, finite: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if not tensor.is_floating_point():
        return tensor.amin(), tensor.amax()
    above = torch.full((), math.inf, dtype=tensor.dtype, device=tensor.device)
    return torch.where(finite, tensor, above).amin(), torch.where(finite, tensor, -above).amax()


def _finished(stats: Stats, dtype: str) -> Stats:
    """Add what follows from the numbers."""
    limit = FLOAT_LIMIT.get(dtype)
    bounds = [abs(stats[key]) for key in ("min", "max") if math.isfinite(stats.get(key, math.inf))]
    for key in ("mean", "norm"):
        if not math.isfinite(stats.get(key) or 0.0):  # beyond what a float64 can hold
            stats[key] = None
    if not bounds:
        stats = {key: value for key, value in stats.items() if key.endswith("_count")}
    return {
        **stats,
        "has_nan": stats["nan_count"] > 0,
        "has_posinf": stats["posinf_count"] > 0,
        "has_neginf": stats["neginf_count"] > 0,
        "saturated": bool(limit and bounds and max(bounds) == limit),
    }
