"""The rows of msprobe's table."""

from __future__ import annotations

CALLS = "step rank seq name api phase kind args"


def test_inputs_then_outputs_and_what_only_one_side_has(ask) -> None:
    db = ask("diff/spreadsheet")
    db.table("call_pairs", "step rank bench_seq target_seq how", "0 0 0 0 place")
    db.table("unpaired", "step rank side seq", "0 0 bench 1")
    argument = '{"input.1":{"type":"float","value":0.5}}'
    db.table(
        "bench_calls",
        CALLS,
        f"0 0 0 mul.0 mul forward compute {argument}",
        "0 0 1 gelu.0 gelu forward compute -",
    )
    db.table("target_calls", CALLS, f"0 0 0 mul.0 mul forward compute {argument}")
    tensors = "step seq slot direction max"
    db.table(
        "bench_tensors",
        tensors,
        "0 0 output.0 output 2",
        "0 0 input.0 input 1",
        "0 1 input.0 input 3",
    )
    db.table("target_tensors", tensors, "0 0 output.0 output 2", "0 0 input.0 input 1")
    assert db.rows("place name bench_name max bench_max plain") == [
        (0, "mul.0.input.0", "mul.0.input.0", "1.0", "1.0", False),
        (1, "mul.0.input.1", "mul.0.input.1", "0.5", "0.5", True),
        (2, "mul.0.output.0", "mul.0.output.0", "2.0", "2.0", False),
        (0, None, "gelu.0.input.0", None, "3.0", False),
    ]
