"""ray_cluster.yaml: Ray's own schema takes it, and `ray up` makes a cluster of it as it stands."""

from __future__ import annotations

import copy
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.hosts import SEARCH, Host, Network, why_not

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "ray_cluster.yaml"
DUMP = ROOT / "examples" / "tp2_dp2_log_of_zero"
pytestmark = pytest.mark.timeout(900)
NAMES = yaml.safe_load(FILE.read_text())["provider"]
SUBMIT = "ray job submit --address http://127.0.0.1:8265 --"


@pytest.fixture
def config() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return content


def validate(config: dict[str, Any]) -> dict[str, Any]:
    """Return what Ray makes of a configuration that it finds valid."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared: dict[str, Any] = prepare_config(copy.deepcopy(config))
    validate_config(prepared)
    return prepared


def test_ray_takes_the_file(config: dict[str, Any]) -> None:
    (nodes,) = validate(config)["available_node_types"].values()
    assert nodes["min_workers"] == nodes["max_workers"] == len(NAMES["worker_ips"])


@pytest.mark.parametrize("wrong", [{"setup_comands": []}, {"rsync_exclude": ".git"}, {"auth": 1}])
def test_ray_refuses_what_is_wrong(config: dict[str, Any], wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(config | wrong)


def test_every_room_is_mounted(config: dict[str, Any]) -> None:
    mounted = {place for place in config["file_mounts"].values() if not place.startswith("~")}
    assert {"analyzers", "collectors", "pipeline", "sql", "pyproject.toml"} <= mounted
    assert all((ROOT / place).exists() for place in mounted)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A desk, and the hosts that ray_cluster.yaml names: switched on, with nothing installed."""
    if reason := why_not():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory() as name, Network(Path(name)) as network:
        wheels, data = Path(name) / "wheels", Path(name) / "data"
        download(wheels)
        shutil.copytree(DUMP, data / "dump")
        data.chmod(0o777)
        here = {Path(place): place for place in (ROOT, sys.prefix, sys.base_prefix)}
        desk = network.host("desk", here | {data: "/data"})
        at_desk(desk, "mkdir ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519")
        key = at_desk(desk, "cat ~/.ssh/id_ed25519.pub")
        for host in (NAMES["head_ip"], *NAMES["worker_ips"]):
            let_in(network.host(host, {wheels: "/wheels", data: "/data"}), key)
        yield network


def download(wheels: Path) -> None:
    """Fetch what the hosts will install, in the versions of here; they reach no other network."""
    versions, python = wheels.with_name("versions.txt"), wheels.with_name("python")
    freeze = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    versions.write_text(subprocess.run(freeze, check=True, capture_output=True, text=True).stdout)
    theirs = shutil.which("python3", path=SEARCH)  # the hosts' Python may be another than this one
    subprocess.run([str(theirs), "-m", "venv", str(python)], check=True)
    pip = [str(python / "bin" / "pip"), "wheel", "-qq", "-w", str(wheels), "-c", str(versions)]
    subprocess.run([*pip, f"{ROOT}[pipeline]", "setuptools"], check=True)


def let_in(host: Host, key: str) -> None:
    """Let the owner of a key log in as `ubuntu`, and show that user's pip the wheels."""
    for place, text in (
        (".ssh/authorized_keys", key),
        (".config/pip/pip.conf", "[global]\nno-index = true\nfind-links = /wheels\n"),
    ):
        write = f"mkdir -p $(dirname {place}) && cat > {place}"
        host.run(["su", "-", "ubuntu", "-c", write], input=text)


def typed(desk: Host, command: str) -> list[str]:
    """Return a command as a user types it at the desk, in the checkout."""
    path = f"PATH={Path(sys.executable).parent}:{SEARCH}"
    clean = ["env", "-i", f"--chdir={ROOT}", "HOME=/root", path, "RAY_AUTH_MODE=token"]
    return [*desk.enter(), *clean, "bash", "-c", command]


def at_desk(desk: Host, command: str, *, fails: bool = False) -> str:
    """Type a command; return what it prints."""
    done = subprocess.run(typed(desk, command), capture_output=True, text=True, timeout=300)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def wait_for_nodes(desk: Host, count: int) -> None:
    """Wait until so many nodes have joined and take tasks."""
    listing = "ray list nodes --address http://127.0.0.1:8265 --filter state=ALIVE --format json"
    for _ in range(60):
        done = subprocess.run(typed(desk, listing), capture_output=True, text=True)
        if done.stdout.count('"node_ip"') == count:
            return
        time.sleep(3)
    log = "ray exec ray_cluster.yaml 'tail -n 40 /tmp/ray/session_latest/logs/monitor.*'"
    raise AssertionError(f"not all hosts joined: {done.stdout}{done.stderr}{at_desk(desk, log)}")


def running(hosts: list[Host]) -> list[str]:
    """Return the hosts that run a part of Ray."""
    parts = ("raylet", "gcs_server")
    return [h.name for h in hosts if any(p in h.run(["ps", "-eo", "comm"]).stdout for p in parts)]


@pytest.fixture(scope="module")
def cluster(network: Network) -> Iterator[Network]:
    """The cluster of ray_cluster.yaml, with all its hosts, and its dashboard at the desk."""
    desk, *hosts = network.hosts
    at_desk(desk, "ray get-auth-token --generate")
    at_desk(desk, "ray up ray_cluster.yaml --yes")
    forward = subprocess.Popen(typed(desk, "ray dashboard ray_cluster.yaml"))
    try:
        wait_for_nodes(desk, len(hosts))
        yield network
    finally:
        forward.kill()


@pytest.fixture(scope="module")
def ended(cluster: Network) -> Network:
    """The same hosts after `ray down`, when the workers have had their minute."""
    desk, *hosts = cluster.hosts
    at_desk(desk, "ray down ray_cluster.yaml --yes")
    for _ in range(40):
        if not running(hosts):
            break
        time.sleep(3)
    return cluster


def result(desk: Host, folder: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(desk.run(["cat", f"{folder}/result.json"]).stdout)
    return content


def check_placed(log: str, hosts: list[Host]) -> None:
    """Assert that several of the hosts did tasks, and no other machine."""
    placed = set(re.findall(r"\d+ tasks on (\S+)", log))
    assert len(placed) > 1, log
    assert placed <= {host.address for host in hosts}


def test_a_job_as_the_readme_has_it(cluster: Network) -> None:
    desk, *hosts = cluster.hosts
    analyze = "python -m pipeline.analyze /data/dump"
    log = at_desk(desk, f"{SUBMIT} {analyze} --out /data/job")
    at_desk(desk, f"{analyze} --out /data/here --engine local")
    check_placed(log, hosts)
    assert result(desk, "/data/job") == result(desk, "/data/here")
    assert result(desk, "/data/job")["origins"][0]["call"] == "Torch.log.0.forward"


def test_a_stranger_is_not_let_in(cluster: Network) -> None:
    command = f"env -u RAY_AUTH_MODE {SUBMIT} python -m pipeline.analyze /data/dump"
    assert "Missing authentication token" in at_desk(cluster.hosts[0], command, fails=True)


def test_the_job_that_kuberay_would_submit(cluster: Network) -> None:
    desk, *hosts = cluster.hosts
    spec = yaml.safe_load((ROOT / "docs" / "rayjob.yaml").read_text())["spec"]
    packages = shlex.quote(json.dumps(yaml.safe_load(spec["runtimeEnvYAML"])))
    submit = f"{SUBMIT.removesuffix('--')} --runtime-env-json {packages} --"
    check_placed(at_desk(desk, f"{submit} {spec['entrypoint']}"), hosts)
    assert result(desk, "/data/answer")["origins"][0]["rank"] == 3


def test_down_ends_all_of_it(ended: Network) -> None:
    assert running(ended.hosts) == []


SRUN = """#!/bin/bash
# The part of Slurm that the script uses: the same command on every node, in the same environment.
for node in $(scontrol show hostnames); do
  kept=$(export -p | grep -E ' (PATH|RAY_AUTH_MODE|RAY_AUTH_TOKEN)=')
  ssh -i ~/ray_bootstrap_key.pem -o StrictHostKeyChecking=no "$node" "$kept; $(printf '%q ' "$@")" &
done
for task in $(jobs -p); do wait "$task" || failed=1; done
exit ${failed:-0}
"""


def test_the_script_for_slurm(ended: Network) -> None:
    desk, head, *workers = ended.hosts
    names = [head.name, *(worker.name for worker in workers)]
    for command, text in (
        ("srun", SRUN),
        ("scontrol", f"#!/bin/bash\nprintf '%s\\n' {' '.join(names)}\n"),
    ):
        head.run(["install", "-m", "755", "/dev/stdin", f"/usr/local/bin/{command}"], input=text)
    script = (ROOT / "docs" / "analyze.sbatch").read_text()
    given = (
        f"PATH=~/crossrank-venv/bin:$PATH SLURM_JOB_NODELIST=any SLURM_JOB_NUM_NODES={len(names)}"
    )
    bash = f"{given} bash -s /data/dump /data/slurm"
    done = head.run(["su", "-", "ubuntu", "-c", bash], input=script, timeout=300)
    check_placed(done.stdout + done.stderr, [head, *workers])
    assert result(desk, "/data/slurm")["origins"][0]["call"] == "Torch.log.0.forward"
    assert running([head, *workers]) == []
