from __future__ import annotations

import pytest


def test_sides_of_a_key(ask) -> None:
    db = ask("rl/side_keys").table(
        "keys", "side part step rank key", "a 0 0 0 uid", "b 0 0 0 uid", "b 1 0 1 advantages"
    )
    assert db.rows("key in_a in_b of_trainer") == [
        ("advantages", False, True, True),
        ("uid", True, True, False),
    ]


@pytest.mark.parametrize(
    ("key", "found"),
    [
        *((key, True) for key in ("old_log_prob", "Teacher_logps", "logprobs", "log_probs_2")),
        *((key, False) for key in ("log_pressure", "blog_post", "logits", "probs", "loss")),
    ],
)
def test_what_is_called_a_log_prob(ask, key: str, found: bool) -> None:
    db = ask("rl/side_keys").table("keys", "side part step rank key", f"a 0 0 0 {key}")
    assert db.rows("log_prob") == [(found,)]


def test_nothing(ask) -> None:
    assert ask("rl/side_keys").rows() == []
