from __future__ import annotations


def test_what_is_odd_and_no_difference(ask) -> None:
    db = ask("rl/notes").table("pairs", "pair step a_rank uid sample", "0 1 2 u 3")
    db.table(
        "pair_values",
        "key pair nan_a nan_b hidden_a hidden_b length_a length_b",
        "k 0 1 1 0 5 - 13",
    )
    db.table("pair_facts", "pair prompt_moved fits_a fits_b", "0 true true true")
    assert db.rows("code key side numbers step rank uid sample") == [
        ("layout", "prompt_ids", "both", 1, 1, 2, "u", 3),
        ("length_mismatch", "k", "b", 13, 1, 2, "u", 3),
        ("nonfinite", "k", "both", 1, 1, 2, "u", 3),
        ("nonfinite_masked", "k", "b", 5, 1, 2, "u", 3),
    ]


def test_texts_beside_prompt_and_response(ask) -> None:
    columns = "key step rank dtype_1 dtype_2 of_samples equal total"
    rows = ["gts 3 1 text text true 2 4", "gts 2 5 text text true 3 4"]
    rows += [f"{key} 0 0 text text true 0 4" for key in ("response_text", "uid")]
    db = ask("rl/notes").table("arrays", columns, *rows, "other 0 0 text int64 true 0 4")
    assert db.rows("code key numbers step rank") == [("text_differs", "gts", 3, 2, 5)]


def test_padding_that_attention_does_not_fit_is_no_note(ask) -> None:
    db = ask("rl/notes").table("pairs", "pair step a_rank uid sample", "0 1 2 u 3")
    assert (
        db.table("pair_facts", "pair prompt_moved fits_a fits_b", "0 true true false").rows() == []
    )


def test_nothing(ask) -> None:
    assert ask("rl/notes").rows() == []
