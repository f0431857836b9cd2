from __future__ import annotations

import pytest

PLACE = "step rank seq"
READ_MADE = "read_nan read_posinf read_neginf made_nan made_posinf made_neginf"
BAD = "step rank seq kind reads_bad makes_bad absorbs " + READ_MADE
READS = "step rank seq slot source producer_step producer_seq"
EDGES = "rank producer_step producer_seq step seq fate"

GIVEN = "0 0 1 compute false true false false false false false false true"
"""Call 1 reads nothing bad and makes the -inf that it was given."""

READS_MINUS_INF = "compute true true false false false true"
"""What follows is what it makes: NaN, inf, -inf."""


def after_a_mask(ask, call: str, *, fate: str = "carries", reads: str = ""):
    """Return the question where call 5 reads the -inf that call 1 was asked for."""
    db = ask("nan/on_purpose").table("given", PLACE, "0 0 1")
    db.table("bad_calls", BAD, GIVEN, f"0 0 5 {call}")
    others = [reads] if reads else []
    db.table("bad_reads", READS, "0 0 5 input.0 made 0 1", *others)
    return db.table("edges", EDGES, f"0 0 1 0 5 {fate}")


def test_an_infinite_argument_gave_the_infinity(ask) -> None:
    db = ask("nan/on_purpose").table("given", PLACE, "2 1 7")
    db.table("bad_calls", BAD, GIVEN.replace("0 0 1", "2 1 7"))
    assert db.rows() == [(2, 1, 7, "given")]


@pytest.mark.parametrize("given", [(0, 0, 2), (0, 1, 1), (1, 0, 1)])
def test_neither_given_nor_kept_what_nobody_asked_for(ask, given: tuple[int, ...]) -> None:
    keeps = f"0 0 5 {READS_MINUS_INF} false false true"
    db = ask("nan/on_purpose").table("bad_calls", BAD, GIVEN, keeps)
    db.table("given", PLACE, " ".join(map(str, given)))
    db.table("bad_reads", READS, "0 0 5 input.0 made 0 1")
    db.table("edges", EDGES, "0 0 1 0 5 carries")
    assert db.rows() == [(*given, "given")]


@pytest.mark.parametrize(
    ("call", "manner"),
    [
        ("compute true true false false false true false false true", "kept"),
        ("compute true true false false false true true false false", "turned"),
        ("compute true true false false false true true false true", "turned"),
        ("compute true true false false false true false true false", "turned"),
        ("compute true true false false false true false true true", "turned"),
    ],
    ids=["-inf", "NaN", "NaN and -inf", "inf", "both infinities"],
)
def test_what_a_call_makes_of_such_an_infinity(ask, call: str, manner: str) -> None:
    assert after_a_mask(ask, call).rows() == [(0, 0, 1, "given"), (0, 0, 5, manner)]


def test_kept_when_it_also_read_the_other_infinity(ask) -> None:
    db = after_a_mask(ask, "compute true true false false true true false true false")
    assert db.rows("seq manner") == [(1, "given"), (5, "kept")]


@pytest.mark.parametrize(
    ("call", "fate"),
    [
        ("compute true false true false false true false false false", "absorbs"),
        ("comm true true false false false true true false false", "sends"),
        ("comm true true false false false true false false true", "sends"),
    ],
    ids=["absorbed", "turned by communication", "kept by communication"],
)
def test_neither_kept_nor_turned(ask, call: str, fate: str) -> None:
    assert after_a_mask(ask, call, fate=fate).rows("seq manner") == [(1, "given")]


@pytest.mark.parametrize("made", ["false false true", "true false false"], ids=["kept", "turned"])
@pytest.mark.parametrize(
    "reads",
    [
        "0 0 5 input.1 unmade - -",
        "0 0 5 input.1 made 0 3",
        "0 0 5 input.1 lost 0 1",
        "0 0 5 input.1 allocated 0 1",
    ],
)
def test_not_when_a_bad_value_from_elsewhere_was_read_too(ask, made: str, reads: str) -> None:
    call = f"{READS_MINUS_INF} {made}"
    assert after_a_mask(ask, call, reads=reads).rows("seq manner") == [(1, "given")]


def chain(ask, *, last: str, foreign: bool = False, also_given: bool = False):
    """Return the question where call 5 keeps the -inf of call 1 and call 6 reads that of call 5.

    Args:
        ask: the fixture.
        last: what call 6 makes.
        foreign: whether call 5 also reads a bad value that no call made.
        also_given: whether call 6 also reads the -inf of call 1.
    """
    db = ask("nan/on_purpose").table("given", PLACE, "0 0 1")
    keeps = f"0 0 5 {READS_MINUS_INF} false false true"
    db.table("bad_calls", BAD, GIVEN, keeps, f"0 0 6 {READS_MINUS_INF} {last}")
    reads = ["0 0 5 input.0 made 0 1", "0 0 6 input.0 made 0 5"]
    edges = ["0 0 1 0 5 carries", "0 0 5 0 6 carries"]
    if foreign:
        reads.append("0 0 5 input.1 unmade - -")
    if also_given:
        reads.append("0 0 6 input.1 made 0 1")
        edges.append("0 0 1 0 6 carries")
    return db.table("bad_reads", READS, *reads).table("edges", EDGES, *edges)


def test_kept_by_one_call_after_the_other_and_turned_by_the_last(ask) -> None:
    kept = [(1, "given"), (5, "kept")]
    assert chain(ask, last="false false true").rows("seq manner") == [*kept, (6, "kept")]
    assert chain(ask, last="true false false").rows("seq manner") == [*kept, (6, "turned")]


def test_not_kept_what_came_from_a_call_that_read_something_else_too(ask) -> None:
    db = chain(ask, foreign=True, last="false false true")
    assert db.rows("seq manner") == [(1, "given")]


def test_not_turned_what_came_from_a_call_that_read_something_else_too(ask) -> None:
    db = chain(ask, foreign=True, last="true false false")
    assert db.rows("seq manner") == [(1, "given")]


def test_not_turned_when_one_of_two_values_came_from_such_a_call(ask) -> None:
    db = chain(ask, foreign=True, also_given=True, last="true false false")
    assert db.rows("seq manner") == [(1, "given")]


def test_kept_in_a_later_step_but_not_on_another_rank(ask) -> None:
    keeps = f"{READS_MINUS_INF} false false true"
    db = ask("nan/on_purpose").table("given", PLACE, "0 0 1")
    db.table("bad_calls", BAD, GIVEN, f"1 0 5 {keeps}", f"0 1 5 {keeps}")
    db.table("bad_reads", READS, "1 0 5 input.0 made 0 1", "0 1 5 input.0 made 0 1")
    db.table("edges", EDGES, "0 0 1 1 5 carries", "1 0 1 0 5 carries")
    assert db.rows() == [(0, 0, 1, "given"), (1, 0, 5, "kept")]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/on_purpose").rows() == []
