"""What is held side by side by its place."""

from __future__ import annotations

CALLS = "step rank seq name api phase kind operation late"


def call(seq: int, operation: str, *, late: bool = False, phase: str = "forward") -> str:
    return f"0 0 {seq} {operation}.{seq}.{phase} {operation} {phase} compute {operation} {late}"


def test_parts_are_even_where_both_do_the_same(ask) -> None:
    db = ask("diff/sequences")
    db.table("bench_calls", CALLS, call(0, "add"), call(1, "mul"), call(2, "exp", late=True))
    db.table("target_calls", CALLS, call(0, "add"), call(1, "mul"), call(2, "log", late=True))
    assert sorted(db.rows("side seq position even")) == [
        ("bench", 0, 0, True), ("bench", 1, 1, True), ("bench", 2, 0, False),
        ("target", 0, 0, True), ("target", 1, 1, True), ("target", 2, 0, False),
    ]  # fmt: skip


def test_another_order_is_not_even(ask) -> None:
    db = ask("diff/sequences")
    db.table("bench_calls", CALLS, call(0, "add"), call(1, "mul"))
    db.table("target_calls", CALLS, call(0, "mul"), call(1, "add"))
    assert {row[0] for row in db.rows("even")} == {False}


def test_the_backward_of_a_recorded_forward_has_no_place(ask) -> None:
    columns = f"{CALLS} forward_seq"
    db = ask("diff/sequences")
    db.table(
        "bench_calls",
        columns,
        f"{call(0, 'add')} -",
        f"{call(1, 'add', phase='backward')} 0",
        f"{call(2, 'accumulate', phase='backward')} -",
    )
    assert db.rows("seq") == [(0,), (2,)]


def test_what_calls_read(ask) -> None:
    db = ask("diff/sequences")
    for side in ("bench", "target"):
        db.table(f"{side}_calls", CALLS, call(0, "add"))
        db.table(
            f"{side}_tensors",
            "step seq slot key direction role shape max min norm",
            "0 0 input.0 input.0 input value [2,3] 2 -1 3",
            "0 0 output.0 output.0 output value [2,3] 9 9 9",
        )
    rows = db.rows("size peak shapes")
    assert rows[0] == rows[1]
    assert rows[0][0] == 3.0
    assert abs(rows[0][1] - (0.618 * 2 - 0.271)) < 1e-12
