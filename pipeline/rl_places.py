"""What is no list of samples, such as a loss: compared with what stands at the same place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .readers.rollouts import Value
from .rl_batches import Batch
from .rl_gap import Gap
from .rl_values import array_difference


def compare_places(
    place: Mapping[str, int],
    batch: Batch,
    there: Iterable[tuple[Batch, bool]],
    keys: Collection[str] | None,
) -> Iterator[dict[str, Any]]:
    """Yield rows of `arrays` for the values of a batch that have a partner.

    Args:
        place: step and rank.
        batch: of A.
        there: batches of B at its place, and whether they hold the same samples.
        keys: only these; None: all.
    """
    mask = batch.layout.mask
    for other, same in there:
        for (key, entry), value in batch.others.items():
            partner = other.others.get((key, entry))
            if partner is None or (keys is not None and key not in keys):
                continue
            content = {
                **place,
                "micro": batch.micro,
                "of_samples": False,
                "key": key,
                "name": value.name or key,
                "entry": entry,
                "dtype_1": value.dtype,
                "dtype_2": partner.dtype,
                "shape_1": list(value.shape),
                "shape_2": list(partner.shape),
                "counted": None if mask is None else int(mask.sum()),
                "samples": batch.size,
                "same_samples": same,
                "whole": _whole(value, partner),
                "value_1": _scalar(value),
                "value_2": _scalar(partner),
            }
            yield content | array_difference(value.array, partner.array)


def _whole(value: Value, partner: Value) -> bool:
    both = [one.array.reshape(-1) for one in (value, partner)]
    numbers = all(array.dtype != object for array in both)
    return numbers and value.shape == partner.shape and Gap(*both).whole


def _scalar(value: Value) -> float | None:
    return None if value.shape else float(value.array)
