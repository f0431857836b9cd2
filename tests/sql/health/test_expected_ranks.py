from __future__ import annotations

import pytest

OPERATIONS = "step rank api group_id peer root parts ratio"


def count(
    ask,
    *operations: str,
    shards: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
    **params: int,
) -> int:
    """Return how many ranks there were, after a look that they are numbered from 0."""
    db = ask("health/expected_ranks", **params).table("shards", "step rank", *shards)
    db.table("groups", "ranks", *groups)
    ranks = [rank for (rank,) in db.table("operations", OPERATIONS, *operations).rows()]
    assert ranks == list(range(len(ranks)))
    return len(ranks)


def test_up_to_the_highest_that_left_a_shard_in_any_step(ask) -> None:
    assert count(ask, shards=("0 0", "0 3", "1 5")) == 6


@pytest.mark.parametrize(
    "operation",
    [
        "0 0 send - 5 - 1 -",
        "0 0 broadcast - - 5 1 1",
        "0 0 broadcast g 1 5 1 1",
    ],
    ids=["as a peer", "as a root", "among others"],
)
def test_up_to_the_highest_that_communication_names(ask, operation: str) -> None:
    assert count(ask, operation, shards=("0 0",)) == 6


def test_up_to_the_highest_that_a_group_names(ask) -> None:
    assert count(ask, shards=("0 0",), groups=("[0,1]", "[2,5,1]")) == 6


@pytest.mark.parametrize("api", "all_gather gather scatter reduce_scatter all_to_all".split())
def test_as_many_as_a_list_over_all_ranks_holds(ask, api: str) -> None:
    assert count(ask, f"0 0 {api} - - - 6 1", shards=("0 0",)) == 6


@pytest.mark.parametrize(
    "api",
    "all_gather_into_tensor _all_gather_base reduce_scatter_tensor _reduce_scatter_base".split(),
)
def test_as_many_as_a_shard_of_all_ranks_goes_into_the_whole(ask, api: str) -> None:
    assert count(ask, f"0 0 {api} - - - 1 6", shards=("0 0",)) == 6


@pytest.mark.parametrize(
    "operation",
    [
        "0 0 all_gather g - - 6 1",
        "0 0 all_gather_into_tensor g - - 1 6",
        "0 0 all_reduce - - - 6 6",
        "0 0 all_to_all_single - - - 1 6",
        "0 0 all_gather - - - 1 6",
        "0 0 all_gather_into_tensor - - - 6 1",
        "0 0 all_gather - - - - -",
    ],
)
def test_not_by_the_sizes_of_a_smaller_group_or_of_another_operation(ask, operation: str) -> None:
    assert count(ask, operation, shards=("0 0", "0 1")) == 2


@pytest.mark.parametrize(("world_size", "ranks"), [(8, 8), (2, 4), (None, 4)])
def test_the_world_size_on_record_unless_more_are_seen(ask, world_size, ranks: int) -> None:
    assert count(ask, shards=("0 3",), world_size=world_size) == ranks


def test_the_world_size_alone(ask) -> None:
    assert count(ask, world_size=3) == 3


def test_the_highest_of_all_hints(ask) -> None:
    operations = "0 0 all_gather - - - 6 1", "0 0 send - 3 - 1 1"
    assert count(ask, *operations, shards=("0 4",), groups=("[0,6]",)) == 7


def test_nothing_on_record_gives_nothing(ask) -> None:
    assert count(ask) == 0
