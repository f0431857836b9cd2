"""All pairs of calls."""

from __future__ import annotations

COLUMNS = "step rank seq name phase kind forward_seq"


def test_a_backward_call_goes_with_its_forward_call_whatever_its_number(ask) -> None:
    db = ask("diff/call_pairs")
    db.table(
        "bench_calls", COLUMNS, "0 0 0 gelu.0 forward compute -", "0 0 1 gelu.0b backward compute 0"
    )
    db.table(
        "target_calls", COLUMNS,
        "0 2 0 gelu.0 forward compute -", "0 2 1 gelu.1 forward compute -",
        "0 2 2 gelu.0b backward compute 0", "0 2 3 gelu.1b backward compute 1",
    )  # fmt: skip
    db.table("forward_pairs", "step bench_seq target_seq how", "0 0 1 place")
    assert db.rows("rank bench_rank bench_name name how") == [
        (2, 0, "gelu.0", "gelu.1", "place"),
        (2, 0, "gelu.0b", "gelu.1b", "forward"),
    ]


def test_the_first_run_comes_before_a_recomputation(ask) -> None:
    db = ask("diff/call_pairs")
    db.table("bench_calls", COLUMNS, "0 0 0 a forward compute -", "0 0 1 ab backward compute 0")
    db.table(
        "target_calls", COLUMNS,
        "0 0 0 a forward compute -", "0 0 1 a2 forward compute -",
        "0 0 2 ab backward compute 0", "0 0 3 a2b backward compute 1",
    )  # fmt: skip
    db.table("forward_pairs", "step bench_seq target_seq how", "0 0 0 place", "0 0 1 recompute")
    assert [row for row in db.rows("name how") if row[1] == "forward"] == [("ab", "forward")]
