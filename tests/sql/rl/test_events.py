from __future__ import annotations

import pytest

PAIRS = "pair step uid sample padding a_rank same_text"
FACTS = (
    "pair tokens_a tokens_b first_difference prefix mask_differs mask_first prompt_differs "
    "prompt_moved fits_a fits_b"
)
VALUES = "key pair n off nan_a nan_b max_abs max_token sum_k3"
LONE = "side step rank micro place uid sample why"
EVENT = "stage cause key"


def events(ask, *facts: str, values=(), lone=(), text="-", one_run=False):
    db = ask("rl/events", one_run=one_run)
    db.table("pairs", PAIRS, f"0 2 u 1 false 3 {text}")
    db.table("pair_facts", FACTS, *facts)
    return db.table("pair_values", VALUES, *values).table("lone_samples", LONE, *lone)


def fact(**changes: object) -> str:
    row = dict.fromkeys(FACTS.split(), "-") | {"pair": 0, "tokens_a": 4, "tokens_b": 4} | changes
    return " ".join(str(value).lower() for value in row.values())


def test_nothing_differs(ask) -> None:
    assert (
        events(ask, fact(prefix=False, mask_differs=0), values=["reward 0 1 0 0 0 0 0 -"]).rows()
        == []
    )


def test_every_column(ask) -> None:
    db = events(ask, fact(mask_differs=2, mask_first=1))
    assert db.rows() == [(2, 40, "mask", "response_mask", [3], 1, 2, None, 3, "u", 1, 1)]


@pytest.mark.parametrize(
    ("facts", "text", "one_run", "event"),
    [
        ({"first_difference": 2, "prefix": True}, "-", True, (30, "longer_response")),
        ({"first_difference": 2, "prefix": False}, "-", True, (30, "retokenised")),
        ({"first_difference": 2, "prefix": False}, "true", False, (30, "retokenised")),
        ({"first_difference": 2, "prefix": False}, "-", False, (34, "values")),
        ({"first_difference": 2, "prefix": False}, "false", True, (34, "values")),
    ],
)
def test_other_ids(ask, facts, text: str, one_run: bool, event) -> None:
    db = events(ask, fact(**facts), text=text, one_run=one_run)
    assert db.rows(EVENT) == [(*event, "response_ids")]


@pytest.mark.parametrize(
    ("fits", "found"),
    [
        (("true", "false"), [(21, "padding_side", "prompt_ids")]),
        (("true", "true"), []),
        (("-", "-"), []),
    ],
)
def test_padding_elsewhere_is_a_fault_where_attention_does_not_fit(ask, fits, found) -> None:
    db = events(ask, fact(prompt_moved=True, prompt_differs=False, fits_a=fits[0], fits_b=fits[1]))
    assert db.rows(EVENT) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("reward 0 1 1 0 0 0.5 0 -", [(50, "reward", "reward")]),
        ("advantages 0 4 1 0 0 0.5 0 -", [(70, "values", "advantages")]),
        ("old_log_prob 0 4 1 0 0 0.5 0 0.1", []),
        ("log_prob_of_a_name 0 4 1 0 0 0.5 0 -", [(80, "values", "log_prob_of_a_name")]),
        ("old_log_prob 0 4 0 1 0 0 0 0", [(60, "nan", "old_log_prob")]),
        ("rollout_log_prob 0 4 0 0 2 0 0 0", [(31, "nan", "rollout_log_prob")]),
        ("old_log_prob 0 4 0 1 1 0 0 0", []),
    ],
)
def test_values(ask, value: str, found) -> None:
    assert events(ask, fact(), values=[value]).rows(EVENT) == found


@pytest.mark.parametrize(("why", "count"), [("missing", 1), ("padding", 0), ("step", 0)])
def test_a_missing_sample(ask, why: str, count: int) -> None:
    db = events(ask, lone=[f"a 2 3 0 0 u 1 {why}"])
    assert len(db.rows()) == count


def test_nothing(ask) -> None:
    assert ask("rl/events").rows() == []
