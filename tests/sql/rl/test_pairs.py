from __future__ import annotations

COLUMNS = (
    "side part step rank micro place uid prompt response response_text tokens counted name key "
    "numbered padding turn number"
)


def sample(
    side: str, place: int, key: str, *, name="u", numbered=True, padding=False, **other
) -> str:
    known = {"step": 0, "rank": 0, "counted": 3, "response": 5, "turn": 1, "text": "-"} | other
    return (
        f"{side} {known['rank']} {known['step']} {known['rank']} 0 {place} {name} 1 "
        f"{known['response']} {known['text']} 3 {known['counted']} {name} {key} "
        f"{str(numbered).lower()} {str(padding).lower()} {known['turn']} {place}"
    )


def pairs(ask, *rows: str):
    return ask("rl/pairs").table("named_samples", COLUMNS, *rows)


def test_by_key_wherever_they_stand(ask) -> None:
    db = pairs(ask, sample("a", 0, "x"), sample("a", 1, "y"), sample("b", 4, "y", rank=1))
    assert db.rows("pair a_place b_place b_rank") == [(0, 1, 4, 1)]


def test_what_is_left_of_a_group_is_joined_in_order(ask) -> None:
    rows = [
        sample(side, place, f"r{side}{place}", numbered=False) for side in "ab" for place in (0, 1)
    ]
    assert pairs(ask, *rows).rows("a_place b_place") == [(0, 0), (1, 1)]


def test_equal_responses_first_then_order(ask) -> None:
    rows = [
        sample("a", 0, "r1", numbered=False),
        sample("a", 1, "r2", numbered=False),
        sample("b", 0, "r2", numbered=False),
        sample("b", 1, "r9", numbered=False),
    ]
    assert pairs(ask, *rows).rows("a_place b_place") == [(0, 1), (1, 0)]


def test_numbers_that_differ_are_not_joined(ask) -> None:
    assert pairs(ask, sample("a", 0, "1"), sample("b", 0, "2")).rows() == []


def test_other_steps_are_not_joined(ask) -> None:
    assert pairs(ask, sample("a", 0, "1"), sample("b", 0, "1", step=1)).rows() == []


def test_padding_rows_are_left_out_and_empty_pairs_marked(ask) -> None:
    db = pairs(
        ask,
        sample("a", 0, "1", counted=0),
        sample("b", 0, "1", counted=0),
        sample("a", 1, "2", padding=True),
        sample("b", 1, "2"),
    )
    assert db.rows("a_place padding") == [(0, True)]


def test_one_empty_sample_is_no_padding(ask) -> None:
    db = pairs(ask, sample("a", 0, "1", counted=0), sample("b", 0, "1"))
    assert db.rows("padding") == [(False,)]


def test_nothing(ask) -> None:
    assert ask("rl/pairs").rows() == []
