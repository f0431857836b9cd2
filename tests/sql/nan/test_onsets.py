from __future__ import annotations


def test_first_living_entry_of_each_step_and_rank(ask) -> None:
    db = ask("nan/onsets").table(
        "living",
        "step rank seq entry",
        "0 0 7 received",
        "0 0 5 birth",
        "0 1 9 import",
        "1 0 2 birth",
    )
    assert db.rows() == [(0, 0, 5, "birth"), (0, 1, 9, "import"), (1, 0, 2, "birth")]


def test_what_a_communication_call_read_comes_before_what_it_received(ask) -> None:
    db = ask("nan/onsets").table("living", "step rank seq entry", "0 0 5 received", "0 0 5 import")
    assert db.rows("seq entry") == [(5, "import")]


def test_nothing_living_gives_nothing(ask) -> None:
    assert ask("nan/onsets").rows() == []
