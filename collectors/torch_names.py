"""What a function of PyTorch is called in a record, and how it is treated."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

PREFIXES = {
    "torch": "Torch",
    "torch.functional": "Torch",
    "torch._C._VariableFunctions": "Torch",
    "torch.nn.functional": "Functional",
    "torch._C._nn": "Functional",
    "torch._C._linalg": "Linalg",
    "torch._C._fft": "Fft",
    "torch._C._special": "Special",
    "torch.nn.init": "Init",
    "torch._tensor": "Tensor",
}
"""Module of a function -> first word of its name in a record; msprobe's words where it has them."""

NOT_A_CALL = {
    "backward", "grad", "__iter__", "apply_", "map_", "map2_",  # they run others
    "__get__", "__set__", "__delete__", "_set_grad_enabled", "requires_grad_", "retain_grad",
    "register_hook", "register_post_accumulate_grad_hook", "__reduce_ex__", "__deepcopy__",
    "as_subclass", "is_tensor", "data_ptr", "__repr__", "__format__", "__hash__", "share_memory_",
    # they tell of a tensor
    "size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "element_size",
    "is_floating_point", "is_complex", "is_signed", "is_contiguous", "is_pinned", "is_shared",
    "is_inference", "is_set_to", "is_same_size", "get_device", "storage", "untyped_storage",
    "typed_storage", "storage_type", "has_names", "type", "__len__", "__contains__", "__array__",
    "is_conj", "is_neg", "result_type", "can_cast", "promote_types", "is_storage", "_is_view",
    # they hand its values to Python
    "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__complex__", "__index__",
    "equal", "allclose", "is_nonzero",
}  # fmt: skip
"""Functions that compute nothing: not recorded."""

MEMORY_ONLY = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",
    "resize_", "empty_quantized",
}  # fmt: skip
"""Functions that reserve memory without writing it."""

PARTIAL_WRITES = {
    "__setitem__", "index_put_", "index_copy_", "index_fill_", "masked_scatter_", "masked_fill_",
    "scatter_", "put_",
}  # fmt: skip
"""Functions that write some elements of their first argument, and leave the others as they are."""

PARTLY_WRITTEN = {"all_gather_copy_in": ("input.1", "output.1")}
"""Functions that write a part of memory and hand on the rest as it is: FSDP's, before a gather."""

COMMUNICATION = ("torch.distributed", "torch._ops._c10d_functional", "torch._ops.c10d_functional")


@dataclass(frozen=True)
class Api:
    """One function.

    Args:
        prefix: first word of the name: Torch, Tensor, Functional, Distributed, ...
        name: of the function.
        comm: it communicates.
        skip: it is no call for a record: a property, a flag, the engine of autograd.
    """

    prefix: str
    name: str
    comm: bool = False
    skip: bool = False


def api_of(func: Any) -> Api:
    """Return what a function that PyTorch hands to a TorchFunctionMode is."""
    name = getattr(func, "__name__", str(func)).partition(".")[0]
    module = getattr(func, "__module__", None) or "torch._tensor"
    comm = module.startswith(COMMUNICATION)
    if comm:
        return Api("Distributed", name, comm=True)
    if name in NOT_A_CALL:
        return Api("", name, skip=True)
    prefix = PREFIXES.get(module, module.rpartition(".")[2].title())
    for family in ("linalg", "fft", "special"):
        if prefix.lower() == family and name.startswith(family + "_"):
            name = name[len(family) + 1 :]
    return Api(prefix, name)


class Names:
    """Names of calls with running numbers: Functional.linear.12.forward."""

    def __init__(self) -> None:
        self._numbers: dict[str, itertools.count[int]] = defaultdict(itertools.count)

    def clear(self) -> None:
        """Number from 0 again: a new step."""
        self._numbers.clear()

    def next(self, prefix: str, api: str, ending: str = "forward") -> tuple[str, int]:
        """Return the name of the next call, and its number among those of the function."""
        stem = f"{prefix}.{api}"
        number = next(self._numbers[stem + ending])
        return f"{stem}.{number}.{ending}", number
