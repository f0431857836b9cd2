from __future__ import annotations

COLUMNS = "side step rank micro place uid prompt prompt_text counted"


def test_what_joins_how_many(ask) -> None:
    db = ask("rl/identities").table(
        "samples",
        COLUMNS,
        "a 0 0 0 0 7 11 - 3",
        "a 0 0 0 1 8 12 - 4",
        "b 0 0 0 0 7 11 - 3",
        "b 0 0 0 1 9 13 - 4",
    )
    assert db.rows() == [(1, 1, 0, 2, 1, 1, 7)]


def test_ids_of_another_run_join_nothing(ask) -> None:
    db = ask("rl/identities").table("samples", COLUMNS, "a 0 0 0 0 x 11 - -", "b 0 0 0 0 y 11 - -")
    assert db.rows("by_ids by_prompt same_prompt") == [(0, 1, 1)]


def test_without_prompts_texts_tell(ask) -> None:
    db = ask("rl/identities").table("samples", COLUMNS, "a 0 0 0 0 - - 5 -", "b 0 1 0 0 - - 5 -")
    assert db.rows("by_prompt by_text by_place") == [(0, 1, 0)]


def test_nothing(ask) -> None:
    assert ask("rl/identities").rows() == [(0, 0, 0, 0, 0, 0, 0)]
