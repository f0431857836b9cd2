from __future__ import annotations

COLUMNS = (
    "pair numel unequal beyond bits_differ aa dd max_abs first_place last_place roundings error"
)


def differences(ask, *pieces: str):
    return ask("checkpoint/differences").table("pieces", COLUMNS, *pieces)


def test_pieces_add_up(ask) -> None:
    db = differences(
        ask,
        "0 4 1 1 true 1.5 0.25 0.5 6 6 3 -",
        "0 4 2 0 false 2.5 0.75 0.75 1 2 2 -",
        "1 8 0 0 false 9 0 0 - - 15 -",
    )
    assert db.rows(COLUMNS) == [
        (0, 8, 3, 1, True, 4.0, 1.0, 0.75, 1, 6, 2, None),
        (1, 8, 0, 0, False, 9.0, 0.0, 0.0, None, None, 15, None),
    ]


def test_an_error_stays(ask) -> None:
    db = differences(ask, "0 4 0 0 false 1 0 0 - - 15 -", "0 - - - - - - - - - - cut")
    assert db.rows("pair numel error") == [(0, 4, "cut")]


def test_nothing_compared(ask) -> None:
    assert differences(ask).rows() == []
