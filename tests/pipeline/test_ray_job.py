"""The main job as users submit it: a cluster of two nodes, `ray job submit`, the same answer."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
RAY = str(Path(sys.executable).with_name("ray"))
DUMP = ROOT / "examples" / "tp2_dp2_log_of_zero"


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Variables that keep this cluster apart from any other of this machine."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    with tempfile.TemporaryDirectory(prefix="cr") as folder:  # short: Ray makes sockets in it
        place = {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0"}
        path = f"{Path(RAY).parent}{os.pathsep}{os.environ['PATH']}"  # whose python the job runs
        yield os.environ | token | place | {"PATH": path}


@pytest.fixture(scope="module")
def cluster(environment: dict[str, str]) -> Iterator[str]:
    """Address for jobs of a head with one CPU and a second node with another."""
    port, dashboard = free_port(), free_port()
    head = [RAY, "start", "--head", f"--port={port}", f"--dashboard-port={dashboard}"]
    worker = [RAY, "start", f"--address=127.0.0.1:{port}"]
    address = f"http://127.0.0.1:{dashboard}"
    nodes = []
    try:
        nodes.append(start(head, environment))
        wait_for(address)
        nodes.append(start(worker, environment))
        wait_for_nodes(f"127.0.0.1:{port}", environment)
        yield address
    finally:
        for node in reversed(nodes):
            node.terminate()
        for node in nodes:
            node.wait(60)


def start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    silent = subprocess.DEVNULL
    own = [f"--dashboard-agent-listen-port={free_port()}", "--num-cpus=1", "--block"]
    return subprocess.Popen([*command, *own], env=environment, stdout=silent, stderr=silent)


def wait_for(address: str) -> None:
    for _ in range(120):
        try:
            urlopen(address, timeout=5).close()
        except (URLError, ConnectionError, TimeoutError) as error:
            if getattr(error, "code", None):  # it answers, if only that a token is missing
                return
            time.sleep(0.5)
        else:
            return
    raise AssertionError(f"no dashboard at {address}")


def wait_for_nodes(address: str, environment: dict[str, str]) -> None:
    for _ in range(120):
        status = subprocess.run(
            [RAY, "status", "--address", address], env=environment, capture_output=True, text=True
        )
        if re.search(r"/2\.0 CPU", status.stdout):
            return
        time.sleep(0.5)
    raise AssertionError(f"the second node did not come up: {status.stdout}{status.stderr}")


def submit(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Submit a job; anew while the nodes still start what takes jobs."""
    for _ in range(60):
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
        )
        if "No available agent" not in done.stdout + done.stderr:
            break
        time.sleep(1)
    return done


def test_a_submitted_job_gives_the_answer_of_this_machine(
    cluster: str, environment: dict[str, str], tmp_path: Path
) -> None:
    job = ["python", "-m", "pipeline.analyze", str(DUMP), "--out", str(tmp_path / "job")]
    command = [RAY, "job", "submit", "--address", cluster, "--working-dir", ".", "--"]
    done = submit([*command, *job], environment)
    assert done.returncode == 0, done.stdout + done.stderr
    nodes = re.findall(r"(\d+) tasks on \S+ \((\w+)\)", done.stdout + done.stderr)
    assert len({node for _, node in nodes}) == 2
    assert sum(int(tasks) for tasks, _ in nodes) == 5  # a rank each, and a look at the origin

    here = [sys.executable, *job[1:-1], str(tmp_path / "here")]
    subprocess.run(here, cwd=ROOT, check=True, capture_output=True)
    answers = [json.loads((tmp_path / n / "result.json").read_text()) for n in ("job", "here")]
    assert answers[0] == answers[1]
    assert answers[0]["origins"][0]["call"] == "Torch.log.0.forward"
