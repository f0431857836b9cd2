"""What the rows of the questions become: verdict, findings in order, warnings."""

from __future__ import annotations

from typing import Any

import pytest

from analyzers.checkpoint_diff import checkpoint_diff, index_of

Row = dict[str, Any]


class Rows:
    """Answers with rows that a test gives; what is not given is empty."""

    def __init__(self, **tables: list[Row]) -> None:
        self.tables = tables

    def rows(self, name: str) -> list[Row]:
        return self.tables.get(name.rpartition("/")[2], [])


def verdict(**changes: Any) -> Row:
    zero = dict.fromkeys(
        ("pair", "unequal", "beyond", "nan_a", "nan_b", "inf_a", "inf_b", "padding"), 0
    )
    row = {
        "kind": "weight", "name": "w", "name_b": "w", "dtype_a": "float32", "dtype_b": "float32",
        "shape": [2, 3], "status": "equal", "numel": 6, "l2": 0.0, "relative_l2": 0.0, "cos": 1.0,
        "max_abs": 0.0, "max_rel": 0.0, "first_place": None, "last_place": None, "roundings": 15,
        "assumed_padding": 0, "note": "", "error": None, "bits_differ": False,
    }  # fmt: skip
    return {**zero, **row, **changes}


DIFFERENT = {"status": "different", "unequal": 1, "beyond": 1, "first_place": 4, "last_place": 4}
PROBLEM = {"code": "file_missing", "side": "b", "text": "gone", "tensors": []}


@pytest.mark.parametrize(
    ("rows", "problems", "answer"),
    [
        ([verdict()], [], "same"),
        ([verdict(**DIFFERENT)], [], "different"),
        ([], [], "unknown"),
        ([verdict()], [PROBLEM], "unknown"),
        ([verdict(**DIFFERENT)], [PROBLEM], "different"),
        ([verdict(), verdict(status="incomparable", error="cut")], [], "unknown"),
        ([verdict(), verdict(kind="replica", **DIFFERENT)], [], "same"),
        ([verdict()], [{**PROBLEM, "code": "not_covered"}], "same"),
    ],
)
def test_verdict(rows: list[Row], problems: list[Row], answer: str) -> None:
    assert checkpoint_diff(Rows(verdicts=rows, problems=problems))["verdict"] == answer


def test_findings_in_order_of_importance() -> None:
    rows = [
        verdict(name="rounded", status="rounded", dtype_b="bfloat16"),
        verdict(name="moment", kind="optimizer", relative_l2=9.0, **DIFFERENT),
        verdict(name="little", relative_l2=0.1, **DIFFERENT),
        verdict(name="much", relative_l2=0.5, **DIFFERENT),
        verdict(name="equal"),
    ]
    found = checkpoint_diff(Rows(verdicts=rows))
    names = [f["name"] for f in found["findings"]]
    assert names == ["much", "little", "moment", "rounded"]
    assert found["counts"] == {"different": 3, "rounded": 1, "equal": 1}
    assert len(checkpoint_diff(Rows(verdicts=rows), every=True)["findings"]) == 5


def test_copies_that_disagree_are_warnings() -> None:
    rows = [verdict(), verdict(kind="replica", name_b="tp rank 1 of B", **DIFFERENT)]
    found = checkpoint_diff(Rows(verdicts=rows))
    (warning,) = found["warnings"]
    assert warning["code"] == "replica_mismatch"
    assert "tp rank 1 of B" in warning["text"]
    assert "[1, 1]" in warning["text"]
    assert found["findings"] == []


def test_index_of_a_place() -> None:
    assert index_of(0, []) == []
    assert index_of(23, [2, 3, 4]) == [1, 2, 3]
