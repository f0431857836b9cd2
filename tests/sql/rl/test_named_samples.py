from __future__ import annotations

import pytest

COLUMNS = "side part step rank micro place uid sample prompt response counted"
ROWS = ("a 0 0 0 0 0 7 1 11 21 3", "a 0 0 0 0 1 7 1 11 21 0", "a 0 0 0 0 2 8 0 12 22 0")


@pytest.mark.parametrize(
    ("match", "names", "keys"),
    [
        ("ids", ["7", "7", "8"], ["1", "1", "0"]),
        ("prompt", ["11", "11", "12"], ["response 21", "response 21", "response 22"]),
        ("place", ["0/0", "0/0", "0/0"], ["0", "1", "2"]),
    ],
)
def test_what_a_sample_is_joined_by(ask, match: str, names: list[str], keys: list[str]) -> None:
    rows = ask("rl/named_samples", match_by=match).table("samples", COLUMNS, *ROWS)
    found = sorted(rows.rows("place name key"))
    assert [name for _, name, _ in found] == names
    assert [key for _, _, key in found] == keys


def test_an_empty_row_beside_a_fuller_one_of_the_same_id_is_padding(ask) -> None:
    rows = ask("rl/named_samples", match_by="ids").table("samples", COLUMNS, *ROWS)
    assert sorted(rows.rows("place padding")) == [(0, False), (1, True), (2, False)]


def test_a_sample_without_an_id_is_joined_by_its_place(ask) -> None:
    rows = ask("rl/named_samples", match_by="ids").table(
        "samples", COLUMNS, "a 0 0 3 1 2 - 1 - - 3"
    )
    assert rows.rows("name key numbered") == [("3/1", "2", True)]


def test_equal_samples_take_turns_and_get_numbers(ask) -> None:
    twice = [row.replace(" 7 1 ", " 7 - ").replace(" 0\n", "") for row in ROWS[:1] * 2]
    rows = ask("rl/named_samples", match_by="ids").table("samples", COLUMNS, *twice)
    assert sorted(rows.rows("turn number")) == [(1, 0), (2, 1)]


def test_nothing(ask) -> None:
    assert ask("rl/named_samples").rows() == []
