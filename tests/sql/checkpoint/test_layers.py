from __future__ import annotations

COLUMNS = "pair kind part layer name status relative_l2"


def test_the_worst_of_a_layer(ask) -> None:
    db = ask("checkpoint/layers").table(
        "verdicts",
        COLUMNS,
        "0 weight mlp.up 0 a equal 0",
        "1 weight mlp.up 1 b different 0.5",
        "2 weight mlp.up 1 c different 0.25",
        "3 weight mlp.up 1 d incomparable -",
        "4 weight norm - e rounded 0.001",
        "5 replica norm - f different 9",
    )
    assert db.rows() == [
        ("mlp.up", 0, 1, 0, 0, 0.0, "a"),
        ("mlp.up", 1, 3, 2, 1, 0.5, "b"),
        ("norm", None, 1, 0, 0, 0.001, "e"),
    ]


def test_nothing(ask) -> None:
    assert ask("checkpoint/layers").rows() == []
