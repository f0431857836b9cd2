"""Each call stack once."""

from __future__ import annotations


def test_each_stack_once(ask) -> None:
    db = ask("diff/stacks").table("calls", "seq stack", "0 a.py:1", "1 a.py:1", "2 b.py:2", "3 -")
    assert sorted(row[0] for row in db.rows("stack")) == ["a.py:1", "b.py:2"]
