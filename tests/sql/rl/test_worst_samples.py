from __future__ import annotations


def test_largest_gap_first(ask) -> None:
    db = ask("rl/worst_samples").table(
        "pairs", "pair step padding uid", "0 0 false u", "1 0 false v", "2 0 true w"
    )
    db.table(
        "pair_values",
        "key pair n sum sum_abs max_abs max_token sum_k3 clipped",
        *("k 0 2 0.2 0.4 0.3 1 0.1 0", "k 1 2 0.2 0.4 0.7 1 0.1 0", "k 2 2 0 0 9 0 9 0"),
    )
    assert db.rows("key uid max_abs mean") == [("k", "v", 0.7, 0.1), ("k", "u", 0.3, 0.1)]


def test_a_hundred_of_each_key(ask) -> None:
    db = ask("rl/worst_samples").table(
        "pairs", "pair step padding", *(f"{n} 0 false" for n in range(120))
    )
    rows = [f"k {n} 1 0 0 {n} 0 0 0" for n in range(120)]
    db.table("pair_values", "key pair n sum sum_abs max_abs max_token sum_k3 clipped", *rows)
    assert [pair for (pair,) in db.rows("pair")] == list(range(119, 19, -1))


def test_nothing(ask) -> None:
    assert ask("rl/worst_samples").rows() == []
