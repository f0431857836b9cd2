"""Views made under no_grad have no node of autograd; leaves that are views do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from .recording import record


def read_later() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    with torch.no_grad():
        view = x[0]
    torch.positive(view * 2)


def row_of_a_weight_filled() -> None:
    weight = nn.Embedding(3, 2).weight
    with torch.no_grad():
        weight[0].fill_(0)
    torch.positive(weight * 2)


def part_of_a_result_changed() -> None:
    y = torch.ones(2, 2, requires_grad=True) * 2
    with torch.no_grad():
        y[:1].mul_(2)
    torch.positive(y)


@pytest.mark.parametrize("work", [read_later, row_of_a_weight_filled, part_of_a_result_changed])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_such_a_view_does_not_stop_the_record(tmp_path: Path, work: Callable[[], None]) -> None:
    assert "Torch.positive.0.forward" in record(tmp_path, work).names


@pytest.mark.parametrize(
    "leaf",
    [
        lambda: torch.ones(4, 4)[0].requires_grad_(),
        lambda: nn.Parameter(torch.ones(4, 4)[0]),
        lambda: torch.ones(4, requires_grad=True).mul(2).detach().requires_grad_(),
    ],
    ids=["slice", "parameter", "detached"],
)
def test_a_leaf_that_is_a_view_has_its_gradient_recorded(
    tmp_path: Path, leaf: Callable[[], Tensor]
) -> None:
    x = leaf()
    found = record(tmp_path, lambda: (x * 2).sum().backward())
    assert [call["api"] for call in found.calls].count("accumulate") == 1
