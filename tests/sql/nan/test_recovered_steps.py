from __future__ import annotations

import pytest

CANDIDATES = "step rank seq entry found dtype phase"
OVERFLOW = "birth [inf] float16 backward"


def steps(ask, *candidates: str, on_record: str = "0 1", bad: str = "0", judged: str = "9"):
    """Return the question for one rank.

    Args:
        ask: the fixture.
        candidates: where bad values began.
        on_record: the steps with a shard.
        bad: the steps that a living bad value came into.
        judged: tensors of each shard of which it is known what they hold.
    """
    db = ask("nan/recovered_steps").table("candidates", CANDIDATES, *candidates)
    db.table("onsets", "step rank seq entry", *(f"{step} 0 3 birth" for step in bad.split()))
    shards = (f"{step} 0 {judged}" for step in on_record.split())
    return db.table("shards", "step rank judged", *shards)


def test_a_backward_overflow_that_a_finite_step_follows(ask) -> None:
    assert steps(ask, f"0 0 3 {OVERFLOW}").rows() == [(0, 1)]


@pytest.mark.parametrize(
    "candidate",
    [
        "birth [inf] float16 backward",
        "birth [nan] float16 backward",
        "import [inf] float16 backward",
        "import [inf,-inf] float16 backward",
        "import [-inf] float32 backward",
        "import [inf] bfloat16 backward",
        "received [inf] float16 backward",
        "saturated [saturated] float16 backward",
    ],
)
def test_what_a_loss_scale_does(ask, candidate: str) -> None:
    assert steps(ask, f"0 0 3 {candidate}").rows() == [(0, 1)]


@pytest.mark.parametrize(
    "candidate",
    [
        "birth [inf] float16 forward",
        "birth [inf] bfloat16 backward",
        "birth [inf] float32 backward",
        "birth [inf] - backward",
        "import [inf] float16 forward",
        "import [inf] float16 -",
        "import [nan] float16 backward",
        "import [nan] float32 backward",
        "received [inf] float16 forward",
        "received [inf] float32 backward",
        "received [inf] bfloat16 backward",
        "saved [inf] float16 forward",
        "birth [inf] float16 optimizer",
    ],
)
def test_what_a_loss_scale_does_not_do(ask, candidate: str) -> None:
    assert steps(ask, f"0 0 3 {candidate}").rows() == []


def test_everything_bad_must_have_begun_so(ask) -> None:
    db = steps(ask, f"0 0 3 {OVERFLOW}", f"0 1 3 {OVERFLOW}", "0 2 3 birth [nan] float32 forward")
    assert db.rows() == []
    assert steps(ask, f"0 0 3 {OVERFLOW}", f"0 1 3 {OVERFLOW}").rows() == [(0, 1)]


@pytest.mark.parametrize("entry", ["birth", "saved"])
def test_everything_bad_must_be_known_to_have_begun_so(ask, entry: str) -> None:
    assert steps(ask, f"0 0 3 {OVERFLOW}", f"0 0 5 {entry} [nan] float16 -").rows() == []


def test_bad_values_without_a_known_beginning_are_no_overflow(ask) -> None:
    assert steps(ask).rows() == []


@pytest.mark.parametrize(
    ("on_record", "bad"), [("0", "0"), ("0 1", "0 1"), ("0 1 2", "0 1"), ("-1 0", "0")]
)
def test_nothing_has_recovered_before_a_finite_step(ask, on_record: str, bad: str) -> None:
    assert steps(ask, f"0 0 3 {OVERFLOW}", on_record=on_record, bad=bad).rows() == []


def test_a_step_without_a_tensor_that_could_be_judged_is_not_finite(ask) -> None:
    db = ask("nan/recovered_steps").table("candidates", CANDIDATES, f"0 0 3 {OVERFLOW}")
    db.table("onsets", "step rank seq entry", "0 0 3 birth")
    db.table("shards", "step rank judged", "0 0 9", "1 0 0", "1 1 0")
    assert db.rows() == []


def test_a_step_is_finite_by_the_ranks_that_could_be_judged(ask) -> None:
    db = ask("nan/recovered_steps").table("candidates", CANDIDATES, f"0 0 3 {OVERFLOW}")
    db.table("onsets", "step rank seq entry", "0 0 3 birth")
    db.table("shards", "step rank judged", "0 0 9", "1 0 0", "1 1 9")
    assert db.rows() == [(0, 1)]


def test_the_next_step_on_record(ask) -> None:
    assert steps(ask, f"0 0 3 {OVERFLOW}", on_record="0 7 8").rows() == [(0, 7)]


def test_several_overflows_in_a_row_recover_together(ask) -> None:
    overflows = [f"{step} 0 3 {OVERFLOW}" for step in (0, 1, 3)]
    db = steps(ask, *overflows, on_record="0 1 2 3 4", bad="0 1 3")
    assert db.rows() == [(0, 2), (1, 2), (3, 4)]


def test_a_bad_step_after_several_overflows_recovers_none(ask) -> None:
    overflows = [f"{step} 0 3 {OVERFLOW}" for step in (0, 1)]
    fault = "2 0 3 import [nan] float32 forward"
    db = steps(ask, *overflows, fault, on_record="0 1 2 3", bad="0 1 2")
    assert db.rows() == []


def test_nothing_bad_gives_nothing(ask) -> None:
    assert steps(ask, bad="").rows() == []
    assert ask("nan/recovered_steps").rows() == []
