from __future__ import annotations

PLACES = "step rank seq entry"
NAMED = "step rank seq entry name"
HANDOVERS = "step instance rank seq name"


def test_the_first_living_value_of_each_step_and_rank(ask) -> None:
    db = ask("nan/symptoms").table("onsets", PLACES, "1 0 2 birth", "0 1 7 import", "0 0 3 birth")
    db.table("entries", NAMED, "0 0 3 birth log.0", "0 1 7 import mul.4", "1 0 2 birth log.9")
    assert db.rows() == [(0, 0, 3, "log.0"), (0, 1, 7, "mul.4"), (1, 0, 2, "log.9")]


def test_a_receive_that_looks_finite_has_the_name_of_its_call(ask) -> None:
    db = ask("nan/symptoms").table("onsets", PLACES, "0 1 7 received")
    db.table("handovers", HANDOVERS, "0 i 1 7 irecv.2", "0 i 0 7 isend.1", "0 j 1 8 irecv.3")
    assert db.rows() == [(0, 1, 7, "irecv.2")]


def test_a_call_with_several_operations_gives_one_row(ask) -> None:
    db = ask("nan/symptoms").table("onsets", PLACES, "0 1 7 received")
    db.table("entries", NAMED, "0 1 7 received batch.0", "0 1 7 import batch.0")
    db.table("handovers", HANDOVERS, "0 i 1 7 batch.0", "0 j 1 7 batch.0")
    assert db.rows() == [(0, 1, 7, "batch.0")]


def test_steps_that_recovered_are_left_out(ask) -> None:
    db = ask("nan/symptoms").table("onsets", PLACES, "0 0 3 birth", "1 0 4 birth")
    db.table("entries", NAMED, "0 0 3 birth log.0", "1 0 4 birth log.9")
    db.table("recovered_steps", "step recovered_at", "0 2")
    assert db.rows() == [(1, 0, 4, "log.9")]


def test_a_saturated_result_is_a_symptom(ask) -> None:
    db = ask("nan/symptoms").table("onsets", PLACES, "1 0 4 birth")
    db.table("entries", NAMED, "1 0 4 birth log.9")
    db.table("origins", NAMED, "0 2 3 saturated mul.0", "1 0 4 birth log.9", "1 0 6 birth log.10")
    assert db.rows() == [(0, 2, 3, "mul.0"), (1, 0, 4, "log.9")]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/symptoms").rows() == []
