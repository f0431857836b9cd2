"""Other plain arguments."""

from __future__ import annotations

import json

import pytest


def judged(ask, bench: dict, target: dict, **params: bool) -> list:
    db = ask("diff/argument_pairs", **params)
    db.table("call_pairs", "step bench_seq target_seq kind", "0 1 2 compute")
    for side, seq, args in (("bench", 1, bench), ("target", 2, target)):
        text = json.dumps(args, separators=(",", ":"))
        db.table(f"{side}_calls", "step seq args", f"0 {seq} {text}")
    return db.rows("slot bench_value value")


def number(value: float, kind: str = "float") -> dict:
    return {"type": kind, "value": value}


def test_another_probability(ask) -> None:
    found = judged(ask, {"input.p": number(0.0)}, {"input.p": number(0.1)})
    assert found == [("input.p", "0.0", "0.1")]


@pytest.mark.parametrize(
    ("bench", "target"),
    [
        ({"input.p": number(0.1)}, {"input.p": number(0.1)}),
        ({"input.p": number(0.1)}, {"input.p": number(0.1), "input.q": number(1.0)}),
        (
            {"input.device": number("cuda:0", "torch.device")},
            {"input.device": number("npu:0", "torch.device")},
        ),
        ({"input.1": number("cuda:0", "str")}, {"input.1": number("npu:0", "str")}),
    ],
)
def test_what_says_nothing(ask, bench: dict, target: dict) -> None:
    assert judged(ask, bench, target) == []


def test_not_between_frameworks(ask) -> None:
    assert judged(ask, {"input.p": number(0.0)}, {"input.p": number(0.1)}, cross=True) == []


def test_not_between_replicas(ask) -> None:
    assert judged(ask, {"input.p": number(0.0)}, {"input.p": number(0.1)}, replicas=True) == []
