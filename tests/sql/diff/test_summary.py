"""How much was held against each other."""

from __future__ import annotations


def test_counts(ask) -> None:
    db = ask("diff/summary")
    db.table("call_pairs", "step rank", "0 0", "0 0", "1 0")
    db.table(
        "tensor_pairs",
        "step rank judged same_bits agreement",
        "0 0 true - rounding",
        "0 0 true true bits",
        "0 0 false - -",
    )
    db.table("unpaired", "step rank side", "0 0 bench", "0 0 target", "0 0 target")
    db.table("real_errors", "step", "0")
    columns = "step rank pairs judged by_values by_checksum only_in_bench only_in_target"
    assert db.rows(columns) == [(0, 0, 2, 2, 1, 1, 1, 2), (1, 0, 1, 0, 0, 0, 0, 0)]
    assert db.rows("bits rounding padding") == [(1, 1, 0), (0, 0, 0)]
