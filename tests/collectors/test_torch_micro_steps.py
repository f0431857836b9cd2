"""Gradient accumulation: which micro-batch of a step a call belongs to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn

from .recording import Record, record

MICRO = 4


def accumulated(folder: Path, *, one_more_in: int | None = None) -> Record:
    """Record a step of four micro-batches; one of them may call one function more."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(number: int) -> Tensor:
        y = model(torch.ones(1, 2) * number)
        return (y.abs() if number == one_more_in else y).sum() / MICRO

    def step() -> None:
        for number in range(MICRO):
            loss(number).backward()
        optimizer.step()

    return record(folder, step, model)


def calls_of(found: Record, micro: int) -> Counter[tuple[str, str]]:
    """Return (api, phase) of the calls of a micro-batch, and how often each stands there."""
    return Counter((c["api"], c["phase"]) for c in found.calls if c["micro_step"] == micro)


def test_each_micro_batch_has_its_forward_and_backward(tmp_path: Path) -> None:
    found = accumulated(tmp_path)
    for micro in range(MICRO):
        calls = calls_of(found, micro)
        assert calls["linear", "forward"] == calls["linear", "backward"] == 2
        assert calls["tanh", "forward"] == calls["tanh", "backward"] == 1


def test_one_more_call_in_one_micro_batch_moves_no_other(tmp_path: Path) -> None:
    one, other = accumulated(tmp_path / "a"), accumulated(tmp_path / "b", one_more_in=2)
    for micro in range(MICRO):
        extra = calls_of(other, micro) - calls_of(one, micro)
        assert extra == Counter([("abs", "forward"), ("abs", "backward")] if micro == 2 else [])


def test_a_call_is_known_by_its_micro_batch_function_and_number(tmp_path: Path) -> None:
    found = accumulated(tmp_path)
    keys = Counter((c["micro_step"], c["name"]) for c in found.calls)
    assert set(keys.values()) == {1}


def test_counted_anew_in_each_step_and_unknown_without_a_model(tmp_path: Path) -> None:
    assert min(c["micro_step"] or 0 for c in accumulated(tmp_path / "a").calls) == 0
    found = record(tmp_path / "b", lambda: torch.ones(2))
    assert [c["micro_step"] for c in found.calls] == [None]
