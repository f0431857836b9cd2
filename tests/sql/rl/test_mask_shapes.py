from __future__ import annotations


def test_what_all_have_in_common(ask) -> None:
    db = ask("rl/mask_shapes").table(
        "pair_facts",
        "pair mask_differs mask_shift mask_a_all mask_b_all",
        *("0 2 1 true false", "1 2 1 true false", "2 0 0 true true"),
    )
    assert db.rows() == [(2, 2, 1, 2, 0)]


def test_nothing(ask) -> None:
    assert ask("rl/mask_shapes").rows("samples shifted shift") == [(0, 0, None)]
