"""What there is to say about each pair of calls."""

from __future__ import annotations

STATES = (
    "step rank bench_seq target_seq judged in_kind in_slot out_kind out_slot in_ratio out_ratio "
    "in_norm out_norm other_grad"
)
DIFFERING = "step bench_seq target_seq drift explained off after inside slot weight"


def status(ask, state: str, differing: str, *, api: str = "mul", phase: str = "forward") -> list:
    db = ask("diff/findings")
    pair = f"0 0 1 1 place {api} {phase} compute"
    db.table("call_pairs", "step rank bench_seq target_seq how api phase kind", pair)
    db.table("call_states", STATES, f"0 0 1 1 2 {state}")
    if differing:
        db.table("differing", DIFFERING, f"0 1 1 {differing}")
    return [row[0] for row in db.rows("status")]


def test_where_a_difference_begins(ask) -> None:
    out = "- - value output.0 0 9 0 9 -"
    plain = "false false false false false"
    assert status(ask, out, f"{plain} output.0 false") == ["suspect"]
    assert status(ask, "value input.0 - - 9 0 9 0 -", f"{plain} input.0 false") == ["suspect"]
    assert status(ask, "dtype input.0 - - 0 0 0 0 -", f"{plain} input.0 false") == ["dtype"]
    assert status(ask, "shape input.0 - - 0 0 0 0 -", f"{plain} input.0 false") == ["shape"]
    assert status(ask, "argument input.p - - 0 0 0 0 -", f"{plain} input.p false") == ["argument"]
    assert status(ask, "nonfinite input.0 - - 0 0 0 0 -", f"{plain} input.0 false") == ["nonfinite"]


def test_what_follows(ask) -> None:
    told = "false true false true false input.0 false"
    assert status(ask, "value input.0 value output.0 9 99 9 99 -", told) == ["propagated"]
    assert status(ask, "dtype input.0 dtype output.0 0.1 0.2 0 0 -", told) == ["propagated"]


def test_a_value_that_another_dtype_does_not_explain(ask) -> None:
    told = "false true false false false input.0 false"
    assert status(ask, "dtype input.0 dtype output.0 0.3 2.5 0.02 2.5 -", told) == ["suspect"]
    off = "false false true false false input.1 true"
    assert status(ask, "dtype input.1 - - 2.5 0 2.5 0 -", off) == ["suspect"]


def test_notes(ask) -> None:
    assert status(ask, "- - - - 0 0 0 0 output.0", "") == ["requires_grad"]
    assert status(
        ask, "- - value output.0 0.6 1.5 0 0 -", "true false false false false output.0 false"
    ) == ["drift"]
    assert status(ask, "- - - - 0 0 0 0 -", "") == []


def test_a_module_around_a_wrong_call_is_explained_by_it(ask) -> None:
    told = "false false false true true output.0 false"
    assert status(ask, "- - value output.0 0 9 0 9 -", told) == ["propagated"]


def test_padding_is_a_note(ask) -> None:
    db = ask("diff/findings")
    pair = "0 0 1 1 place sum forward compute"
    db.table("call_pairs", "step rank bench_seq target_seq how api phase kind", pair)
    db.table("call_states", f"{STATES} padding", "0 0 1 1 2 - - - - 0 0 0 0 - input.0")
    assert db.rows("status slot") == [("padding", "input.0")]


def test_random_results_of_two_distributions(ask) -> None:
    for alike, status in (("true", "random"), ("-", "random"), ("false", "suspect")):
        db = ask("diff/findings")
        pair = "0 0 1 1 place dropout forward compute"
        db.table("call_pairs", "step rank bench_seq target_seq how api phase kind", pair)
        db.table("call_states", STATES, "0 0 1 1 2 - - value output.0 0 9 0 9 -")
        db.table("differing", DIFFERING, "0 1 1 false false false false false output.0 false")
        db.table("draws", "step bench_seq target_seq alike", f"0 1 1 {alike}")
        assert db.rows("status") == [(status,)]


def test_a_sequence_after_a_difference_is_explained_by_it(ask) -> None:
    for after, status in (("true", "propagated"), ("false", "suspect")):
        db = ask("diff/findings")
        pair = "0 0 1 1 fused linear forward compute"
        db.table("call_pairs", "step rank bench_seq target_seq how api phase kind", pair)
        db.table("call_states", STATES, "0 0 1 1 2 - - value output.0 0 9 0 9 -")
        db.table("differing", DIFFERING, f"0 1 1 false false false {after} false output.0 false")
        assert db.rows("status") == [(status,)]
