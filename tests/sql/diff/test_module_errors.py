"""The worst of each module."""

from __future__ import annotations


def test_by_module_or_operation(ask) -> None:
    db = ask("diff/module_errors")
    db.table(
        "call_pairs", "step rank bench_seq target_seq module api phase",
        "0 0 1 1 mlp.fc linear forward", "0 0 2 2 mlp.fc gelu forward", "0 0 3 3 - add forward",
    )  # fmt: skip
    db.table(
        "call_states", "step bench_seq target_seq in_kind out_kind in_ratio out_ratio",
        "0 1 1 - - 0 0.5", "0 2 2 - value 0 7", "0 3 3 value - 3 0",
    )  # fmt: skip
    assert db.rows("module first_seq calls differing worst") == [
        ("mlp.fc", 1, 2, 1, 7.0),
        ("add", 3, 1, 1, 3.0),
    ]
