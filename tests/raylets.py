"""Ray on hosts of our own: a raylet on each, which can be lost in the middle of a run."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from .hosts import Host, Network

ROOT = Path(__file__).resolve().parents[1]
PYTHON = str(Path(sys.executable))


@dataclass
class Cluster:
    """A raylet on each of three hosts.

    Args:
        network: the hosts; the first is the head.
        variables: that Ray's commands need.
        shared: a folder that all hosts see as /data.
    """

    network: Network
    variables: dict[str, str]
    shared: Path

    @property
    def head(self) -> Host:
        return self.network.hosts[0]

    def command(self, *words: str) -> list[str]:
        analyze = [PYTHON, "-m", "pipeline.analyze", *words]
        return [*self.head.enter(), "env", f"--chdir={ROOT}", *analyze]

    def analyze(self, *words: str) -> subprocess.CompletedProcess[str]:
        where = ["--address", f"{self.head.address}:6379", "--out", "/home/answer"]
        return subprocess.run(
            self.command(*words, *where), env=self.variables, capture_output=True, text=True
        )

    def answer(self, *words: str) -> tuple[dict[str, Any], dict[int, str], str]:
        """Return result.json, the node each rank was read on, and the log."""
        done = self.analyze(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        folder = self.network.folder / self.head.name / "answer"
        result: dict[str, Any] = json.loads((folder / "result.json").read_text())
        shards = (
            duckdb.read_parquet(str(folder / "shards.parquet")).select("rank", "node").fetchall()
        )
        return result, dict(shards), done.stderr

    def disk(self, host: Host) -> Path:
        """Return where a host's own /home lies."""
        return self.network.folder / host.name


@contextmanager
def raylets(count: int) -> Iterator[Cluster]:
    """Start so many hosts with a raylet of one CPU each; they are gone at the end."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    variables = os.environ | token | {"RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryDirectory() as name, Network(Path(name)) as network:
        shared = Path(name) / "data"
        shared.mkdir()
        seen = {Path(place): place for place in (ROOT, sys.prefix, sys.base_prefix)}
        for number in range(count):
            host = network.host(f"node{number}", seen | {shared: "/data"})
            head = ["--head", "--port=6379", "--include-dashboard=false"]
            join = [f"--address={network.hosts[0].address}:6379"]
            start = [str(Path(PYTHON).with_name("ray")), "start", *(join if number else head)]
            own = [f"--node-ip-address={host.address}", "--num-cpus=1", "--disable-usage-stats"]
            host.run([*start, *own, "--object-store-memory=100000000"], env=variables)
        yield Cluster(network, variables, shared)
