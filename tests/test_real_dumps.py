"""Dumps of real runs, by msprobe 1.0 to 26.2: one answer from its JSON and from shards."""

from __future__ import annotations

import fnmatch
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import ingest
from pipeline.loading import load_shards
from pipeline.query import ask
from pipeline.settings import limits
from pipeline.shards import open_dump
from pipeline.store import Store

from .conftest import Analyze, truths

Unpack = Callable[[str], Path]
SIDES = {
    "input_args": "input",
    "input_kwargs": "input",
    "input": "input",
    "output": "output",
    "parameters": "parameters",
}
BLIND = ("structure", "xor")
"""What records no statistics: nothing can be said about it."""


def ingested(source: Path) -> Path:
    """Return the same dump as shards of our own."""
    target = source.parent / "shards"
    args = Namespace(
        source=source, dump=target, step=[], quiet=True,
        engine="local", address=None, workers=1, memory=None,
    )  # fmt: skip
    assert ingest.run(args) == 0
    return target


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the paths in it."""
    warnings = [(w["code"], w.get("step"), w.get("rank")) for w in result["warnings"]]
    return {**result, "dump": "", "warnings": warnings}


@pytest.mark.parametrize("case", truths("nan"))
def test_origin_from_both_forms(case: str, unpack: Unpack, analyze: Analyze) -> None:
    dump = unpack(f"nan/{case}")
    result = analyze(dump)
    hold_against(truths("nan")[case], result)
    assert comparable(analyze(ingested(dump))) == comparable(result)


@pytest.mark.parametrize("case", truths("planted"))
def test_planted_origin(case: str, unpack: Unpack, analyze: Analyze) -> None:
    hold_against(truths("planted")[case], analyze(unpack(f"planted/{case}")))


def hold_against(truth: dict[str, Any], result: dict[str, Any]) -> None:
    """Origins with kind and reach, benign values and warnings are those of the truth, no others."""
    assert result["verdict"] == ("found" if truth["anomaly"] else "clean")
    found = {
        (o["step"], m["rank"], m["call"]): o
        for o in result["origins"]
        for m in o.get("members") or [o]
    }
    for origin in truth["origins"]:
        calls = [origin["call"], *origin.get("also", [])]
        keys = [(origin["step"], origin["rank"], call) for call in calls]
        if origin["kind"] == "unrecorded":
            keys = [key for key in found if key[:2] == (origin["step"], origin["rank"])]
        got = found.pop(next(key for key in keys if key in found))
        assert got["kind"] in origin["kind"]
        if "reached" in origin:
            assert got["reached"] == origin["reached"]
        assert got["reason"]
        assert got["hint"]
    assert not found, "besides the truth"
    hold_notes_against(truth, result)


def hold_notes_against(truth: dict[str, Any], result: dict[str, Any]) -> None:
    for benign in truth.get("benign", [])[:1]:
        listed = [b["call"] for b in result["benign"] if b["rank"] == benign["rank"]]
        assert fnmatch.filter(listed, benign["call"])
    told = {(w["code"], w["rank"]) for w in result["warnings"]}
    assert {r for c, r in told if c == "rank_missing"} == set(truth.get("missing_ranks", []))
    damaged = {*truth.get("truncated_ranks", []), truth.get("killed_rank")} - {None}
    assert {r for c, r in told if c in ("shard_unreadable", "step_incomplete")} == damaged


@pytest.mark.parametrize("case", truths("reading"))
def test_reading(case: str, unpack: Unpack, analyze: Analyze) -> None:
    truth, dump = truths("reading")[case], unpack(f"reading/{case}")
    for path in (dump, ingested(dump)):
        with Store(limits(1), {}) as store:
            found = open_dump(path)
            load_shards(store, found.kind, found.shards)
            assert count(store, "calls") == truth["records"]
            assert count(store, "tensors") == truth["tensors"]
            for spot in truth["spots"]:
                check(store, truth["spot_folder"], spot)
        blind = truth["task"] in BLIND or "xor" in case
        assert analyze(path)["verdict"] == ("unknown" if blind else "clean")


def count(store: Store, table: str) -> int:
    return int(store.con.table(table).aggregate("count(*)").fetchall()[0][0])


def slot_of(spot: dict[str, Any]) -> str:
    """Return the slot of a tensor, from where it stands in the record."""
    path = [str(part) for part in spot["path"]]
    if spot["record"].endswith(".debug"):
        return ".".join(["output", *path])
    if ".parameters_grad" in spot["record"]:
        return f"gradient.{path[0]}"
    return ".".join([SIDES[path[0]], *path[1:]])


def check(store: Store, folder: str, spot: dict[str, Any]) -> None:
    """Hold one tensor against what the file says of it."""
    step, rank = folder.split("/")
    number = int(rank.removeprefix("rank") or 0) if rank.startswith("rank") else 0
    rows = ask(
        store,
        "SELECT max, min, shape, dtype FROM tensors JOIN calls USING (step, rank, seq) "
        f"WHERE name = '{spot['record']}' AND slot = '{slot_of(spot)}' "
        f"AND step = {step[4:]} AND rank = {number}",
    ).fetchall()
    ((high, low, shape, dtype),) = rows
    assert list(shape) == spot["shape"]
    assert dtype == spot["dtype"].split(".")[-1].lower()
    assert (high, low) == (pytest.approx(spot.get("Max")), pytest.approx(spot.get("Min")))
