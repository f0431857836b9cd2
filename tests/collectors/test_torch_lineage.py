"""Which earlier call made a tensor: exactly, or not at all."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from .recording import Record, record, recording


def producer_of_double(dump: Path, value: Callable[[], Tensor]) -> tuple[str, str] | None:
    """Return what made the tensor that `value` returns, as a call sees it that reads it."""
    return record(dump, lambda: torch.positive(value())).producer("Torch.positive")


def in_place() -> Tensor:
    x = torch.zeros(3)
    x += 1
    return x


def through_a_view() -> Tensor:
    x = torch.zeros(2, 3)
    x[0].add_(1)
    return x


def view_of_what_was_written() -> Tensor:
    x = torch.zeros(2, 3)
    x.add_(1)
    return x.view(6)


def detached() -> Tensor:
    x = torch.zeros(3, requires_grad=True)
    y = x * 2
    return y.detach()


def data() -> Tensor:
    x = torch.zeros(3).exp()
    return x.data


def written_through_data() -> Tensor:
    x = torch.zeros(3)
    x.data.add_(1)
    return x


def set_item() -> Tensor:
    x = torch.zeros(3)
    x[1] = 5
    return x


def out_argument() -> Tensor:
    x = torch.zeros(3)
    torch.exp(torch.ones(3), out=x)
    return x


def data_replaced() -> Tensor:
    """The one that is put in is older than the one it replaces."""
    older = torch.ones(3).exp()
    newer = torch.ones(3).sin()
    newer.data = older
    return newer


def transposed() -> Tensor:
    return torch.zeros(2, 3).exp().T


def iterated() -> Tensor:
    first, *_ = torch.zeros(2, 3).exp()
    return first


def from_numpy() -> Tensor:
    return torch.from_numpy(torch.ones(3).exp().numpy())


MAKERS: dict[Callable[[], Tensor], tuple[str, ...]] = {
    in_place: ("Tensor.add_.0.forward",),
    through_a_view: ("Tensor.add_.0.forward",),
    view_of_what_was_written: ("Tensor.view.0.forward",),
    detached: ("Tensor.detach.0.forward",),
    data: ("Tensor.exp.0.forward",),
    written_through_data: ("Tensor.add_.0.forward",),
    set_item: ("Tensor.__setitem__.0.forward",),
    out_argument: ("Torch.exp.0.forward",),
    data_replaced: ("Tensor.exp.0.forward",),
    transposed: ("Tensor.exp.0.forward",),
    iterated: ("Tensor.unbind.0.forward",),
    from_numpy: ("Tensor.exp.0.forward", ""),
}


@pytest.mark.parametrize("value", MAKERS, ids=lambda value: value.__name__)
def test_the_last_write_made_it(tmp_path: Path, value: Callable[[], Tensor]) -> None:
    made = producer_of_double(tmp_path, value)
    assert (made[0] if made else "") in MAKERS[value]


def test_every_producer_is_an_earlier_call_that_has_the_slot(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))

    def train() -> None:
        y = model(torch.randn(2, 4))
        y[0] += 1
        (y.chunk(2)[0] * y.sum()).mean().backward()

    found = record(tmp_path, train, model)
    for call in found.calls:
        for slot, row in call.tensors.items():
            if row["producer_seq"] is not None and row["direction"] != "output":
                maker = found.by_seq[row["producer_seq"]]
                assert maker["seq"] < call["seq"], (call["name"], slot)
                assert row["producer_slot"] in maker.tensors, (call["name"], slot)


@pytest.mark.parametrize("taken", ["before", "after"])
def test_pieces_of_a_flat_buffer_are_known_one_by_one(tmp_path: Path, taken: str) -> None:
    flat = torch.zeros(8)
    early = [flat[0:4], flat[4:8], flat[2:4], flat]

    def work() -> None:
        flat[0:4].copy_(torch.ones(4))
        flat[4:8].copy_(torch.ones(4) * 2)
        for piece in early if taken == "before" else [flat[0:4], flat[4:8], flat[2:4], flat]:
            torch.positive(piece)

    found = record(tmp_path, work)
    makers = [_through_views(found, f"Torch.positive.{n}.forward") for n in range(4)]
    assert makers == [f"Tensor.copy_.{n}.forward" for n in (0, 1, 0, 1)]


def test_a_flat_buffer_of_many_pieces_is_known_piece_by_piece(tmp_path: Path) -> None:
    pieces = torch.zeros(400).split(2)

    def work() -> None:
        for piece in pieces:
            piece.copy_(torch.ones(2))
        torch.positive(pieces[0])
        torch.positive(pieces[199])

    found = record(tmp_path, work)
    assert _through_views(found, "Torch.positive.0.forward") == "Tensor.copy_.0.forward"
    assert _through_views(found, "Torch.positive.1.forward") == "Tensor.copy_.199.forward"


def test_the_bad_piece_of_many_is_what_made_the_whole_bad(tmp_path: Path) -> None:
    flat = torch.zeros(400)

    def work() -> None:
        for place, piece in enumerate(flat.split(2)):
            piece.fill_(torch.nan if place == 3 else 1.0)
        torch.positive(flat)

    assert record(tmp_path, work).producer("Torch.positive") == (
        "Tensor.fill_.3.forward",
        "output.0",
    )


def test_a_piece_that_was_overwritten_is_forgotten(tmp_path: Path) -> None:
    flat = torch.zeros(8)
    start = flat[:2]

    def work() -> None:
        flat.fill_(torch.nan)
        flat[:4].copy_(torch.ones(4))
        torch.positive(start)

    assert record(tmp_path, work).producer("Torch.positive") == (
        "Tensor.copy_.0.forward",
        "output.0",
    )


def test_columns_that_lie_between_one_another_are_kept_apart(tmp_path: Path) -> None:
    table = torch.zeros(4, 2)
    left, right, again = table[:, 0], table[:, 1], table[:, 0]

    def work() -> None:
        left.copy_(torch.ones(4))
        right.copy_(torch.ones(4))
        torch.positive(again)

    assert record(tmp_path, work).producer("Torch.positive") == (
        "Tensor.copy_.0.forward",
        "output.0",
    )


def test_memory_that_is_used_again_has_no_earlier_maker(tmp_path: Path) -> None:
    """Tensors that nothing on record made take the place of dead ones that are on record."""
    places: set[int] = set()

    def work() -> None:
        for _ in range(300):
            places.add(torch.ones(1000).data_ptr())
        gc.collect()
        for _ in range(300):
            fresh: Any = torch.from_numpy(torch.ones(1).numpy().repeat(1000))
            torch.positive(fresh)
            assert fresh.sum() == 1000

    found = record(tmp_path, work)
    for n in range(300):
        assert found.producer(f"Torch.positive.{n}.forward") is None


def test_weights_are_parameters(tmp_path: Path) -> None:
    model = nn.BatchNorm1d(3)

    def work() -> None:
        model(torch.ones(4, 3))
        torch.positive(model.weight.data)
        torch.positive(model.running_mean)

    found = record(tmp_path, work, model)
    norm = found.call("Functional.batch_norm").tensors
    assert {row["shape"][0]: row["direction"] for row in norm.values()}[3] == "parameter"
    assert norm["input.0"]["direction"] == "input"
    assert found.call("Torch.positive").tensors["input.0"]["direction"] == "parameter"


def test_a_weight_that_a_call_wrote_is_made_by_it(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.ones(3))

    def work() -> None:
        with torch.no_grad():
            weight.mul_(2)
        torch.positive(weight)

    found = record(tmp_path, work)
    assert found.producer("Torch.positive") == ("Tensor.mul_.0.forward", "output.0")
    assert found.call("Torch.positive").tensors["input.0"]["direction"] == "parameter"


@pytest.mark.parametrize("make", [torch.empty, torch.Tensor, lambda n: torch.ones(1).new_empty(n)])
def test_memory_that_was_only_reserved_is_a_buffer(tmp_path: Path, make: Any) -> None:
    def work() -> None:
        x = make(3)
        torch.positive(x.fill_(2))

    found = record(tmp_path, work)
    roles = {
        c["api"]: row["role"] for c in found.calls for s, row in c.tensors.items() if s[0] == "o"
    }
    assert roles.get("empty", roles.get("new_empty", "buffer")) == "buffer"
    assert roles["fill_"] == "value"
    assert found.producer("Torch.positive") == ("Tensor.fill_.0.forward", "output.0")


def test_lineage_goes_on_from_step_to_step(tmp_path: Path) -> None:
    with recording(tmp_path) as debugger:
        kept = torch.ones(2).exp()
        debugger.step()
        torch.positive(kept)
    (first,) = [c["seq"] for c in Record(tmp_path).calls if c["api"] == "exp"]
    (row,) = [c.tensors["input.0"] for c in Record(tmp_path, step=1).calls]
    assert (row["producer_seq"], row["producer_slot"]) == (first, "output.0")


def _through_views(found: Record, name: str) -> str:
    """Return what made a tensor, looking through calls that only make a view."""
    made = found.producer(name)
    assert made is not None
    while "__getitem__" in made[0] or ".split" in made[0]:
        made = found.producer(made[0])
        assert made is not None
    return made[0]
