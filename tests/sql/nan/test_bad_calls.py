from __future__ import annotations

import pytest

BAD = "step rank seq kind slot is_read allocated nan posinf neginf"
TENSORS = "step rank seq slot direction role dtype numel has_nan has_posinf has_neginf"


def reading(ask, *results: str, kind: str = "compute"):
    """Return the question for one call that reads NaN and has these results."""
    db = ask("nan/bad_calls")
    db.table("bad_tensors", BAD, f"0 0 5 {kind} input.0 true false true false false")
    read = "0 0 5 input.0 input value float32 4 true - -"
    return db.table("tensors", TENSORS, read, *(f"0 0 5 {result}" for result in results))


def test_what_was_read_and_what_was_made(ask) -> None:
    db = ask("nan/bad_calls")
    db.table(
        "bad_tensors",
        BAD,
        "0 0 5 compute input.0 true false false true false",
        "0 0 5 compute input.1 true false false false true",
        "0 0 5 compute output.0 false false true false false",
        "0 0 6 comm input.0 true false true false false",
        "0 1 5 module output.0 false false false true false",
        "0 1 5 module output.1 false false false false true",
    )
    t, f = True, False
    assert db.rows() == [
        (0, 0, 5, "compute", t, t, f, f, t, t, t, f, f),
        (0, 0, 6, "comm", t, f, f, t, f, f, f, f, f),
        (0, 1, 5, "module", f, t, f, f, f, f, f, t, t),
    ]


def test_what_memory_held_before_it_was_written_was_not_made(ask) -> None:
    db = ask("nan/bad_calls")
    db.table("bad_tensors", BAD, "0 0 5 compute output.0 false true true false false")
    assert db.rows("reads_bad makes_bad") == [(False, False)]


@pytest.mark.parametrize(
    "results",
    [
        ["output.0 output value float32 4 false false false"],
        ["output.0 output value float32 4 false - -"],
        [
            "output.0 output value float16 4 false false false",
            "output.1 output value int64 4 - - -",
        ],
        [
            "output.0 output value float16 4 false false false",
            "output.1 output value float16 0 - - -",
        ],
        [
            "output.0 output value float16 4 false false false",
            "output.1 output echo float16 4 true - -",
        ],
    ],
)
def test_absorbs_when_every_floating_result_is_finite(ask, results: list[str]) -> None:
    assert reading(ask, *results).rows("reads_bad makes_bad absorbs") == [(True, False, True)]


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([], id="no result on record"),
        pytest.param(["output.0 output value bool 4 false false false"], id="isnan"),
        pytest.param(["output.0 output value int64 1 - - -"], id="argmax"),
        pytest.param(["output.0 output value float32 4 - - -"], id="not recorded"),
        pytest.param(["output.0 output value float32 0 false - -"], id="empty"),
        pytest.param(["gradient.weight gradient value float32 4 false - -"], id="no result"),
        pytest.param(
            ["output.0 output value float32 4 false - -", "output.1 output value float32 4 - - -"],
            id="one of two not recorded",
        ),
    ],
)
def test_looks_only_when_no_result_tells_that_it_is_gone(ask, results: list[str]) -> None:
    assert reading(ask, *results).rows("reads_bad makes_bad absorbs") == [(True, False, False)]


def test_absorbs_nothing_when_a_result_is_bad_or_nothing_bad_was_read(ask) -> None:
    db = ask("nan/bad_calls").table(
        "bad_tensors",
        BAD,
        "0 0 5 compute input.0 true false true false false",
        "0 0 5 compute output.0 false false true false false",
        "0 0 6 compute output.1 false true true false false",
    )
    db.table(
        "tensors",
        TENSORS,
        "0 0 5 output.0 output value float32 4 true - -",
        "0 0 5 output.1 output value float32 4 false - -",
        "0 0 6 output.0 output value float32 4 false - -",
    )
    assert db.rows("seq absorbs") == [(5, False), (6, False)]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/bad_calls").rows() == []
