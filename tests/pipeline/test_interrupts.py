"""Ctrl-C and SIGTERM in the middle of a query: it ends, and nobody takes it for a broken shard."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.interrupts import interruptible

ROOT = Path(__file__).resolve().parents[2]
BEGIN = """
import duckdb
from pipeline.engine_local import LocalEngine
from pipeline.interrupts import end_at_sigterm, interruptible

def endless(item):
    print("ready", flush=True)
    duckdb.sql("SELECT count(*) FROM range(10_000_000_000_000) AS t(x) WHERE x % 7 = 3").fetchall()

end_at_sigterm()
try:
"""
END = """
except KeyboardInterrupt:
    print("ended")
"""
IN_A_TASK = "    print(list(LocalEngine(1).map(endless, [0])))"
OUTSIDE = "    with interruptible():\n        endless(0)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("work", [IN_A_TASK, OUTSIDE])
def test_a_query_under_way_ends(number: int, work: str) -> None:
    script = [sys.executable, "-c", BEGIN + work + END]
    with subprocess.Popen(script, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.read() == "ended\n"


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="of ours"), interruptible():
        raise RuntimeError("of ours")
