from __future__ import annotations

COLUMNS = (
    "key name step rank micro entry dtype_1 dtype_2 shape_1 shape_2 equal total first max_abs "
    "max_rel within_3 within_2 nan_1 nan_2"
)


def test_shares_in_percent(ask) -> None:
    row = "k n 1 2 3 4 f f [2,2] [2,3] 3 6 1 0.5 0.25 3 4 0 1"
    db = ask("rl/array_rows").table("arrays", COLUMNS, row)
    assert db.rows() == [
        (
            "k",
            "n",
            1,
            2,
            3,
            4,
            "4",
            "[2, 2]",
            "[2, 3]",
            50.0,
            1,
            0.5,
            0.25,
            50.0,
            400 / 6,
            0,
            1,
            "f",
            "f",
        )
    ]


def test_a_name_has_the_id_of_msprobe(ask) -> None:
    row = "k n 0 0 0 count f f [0] [0] 0 0 - 0 0 0 0 0 0"
    assert ask("rl/array_rows").table("arrays", COLUMNS, row).rows("id entry equal") == [
        (0, "count", None)
    ]


def test_nothing(ask) -> None:
    assert ask("rl/array_rows").rows() == []
