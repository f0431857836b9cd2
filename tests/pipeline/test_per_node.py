"""Shards on each node's own disk: read where they lie, with the answer of one folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..dumps import Run, Value, bad
from ..hosts import why_not
from ..raylets import Cluster, raylets
from .under_way import batches_done

ROOT = Path(__file__).resolve().parents[2]
PYTHON = str(Path(sys.executable))
RANKS = 6
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := why_not():
        pytest.skip(reason)
    with raylets(3) as cluster:
        yield cluster


def faulty_run(folder: Path, ranks: int = RANKS) -> Path:
    """Make a dump in which rank 4 of step 1 gives birth to a NaN that all get."""
    run = Run(folder, ranks=ranks)
    for step in range(2):
        for rank in range(ranks):
            shard = run.rank(rank, step)
            value = Value(nan=int((step, rank) == (1, 4)))
            (x,) = shard.call("Torch.log.0.forward", [Value()], [value])
            y = Value(nan=1) if step else Value()
            (z,) = shard.comm("Distributed.all_reduce.0.forward", [x], [y], reduce_op="SUM")
            shard.call("Torch.mul.0.forward", [z], [bad(nan=8) if step else Value()])
    return run.write()


def spread(cluster: Cluster, whole: Path, name: str, ranks: dict[int, Iterable[int]]) -> None:
    """Put ranks of a dump on the disks of hosts, by number."""
    for number, held in ranks.items():
        here = cluster.disk(cluster.network.hosts[number]) / name
        for rank in held:
            for step in whole.glob("step=*"):
                part = f"{step.name}/rank={rank}"
                shutil.copytree(whole / part, here / part, copy_function=shutil.copy2)
        shutil.copy2(whole / "run.json", here / "run.json")


def alike(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without what differs with the place of the dump."""
    return {key: value for key, value in result.items() if key != "dump"}


def test_each_shard_is_read_on_its_own_node(cluster: Cluster, tmp_path: Path) -> None:
    whole = faulty_run(tmp_path / "whole")
    spread(cluster, whole, "dump", {0: [0, 3], 1: [1, 4], 2: [2, 5]})
    result, nodes, log = cluster.answer("node:///home/dump")

    for rank in range(RANKS):
        host = cluster.network.hosts[rank % 3]
        assert nodes[rank].startswith(f"{host.address} "), nodes
    for host in cluster.network.hosts:
        assert f"{host.address} " in log
    assert log.count("holds 4 shards") == 3

    shutil.copytree(whole, cluster.shared / "whole")
    here, places, _ = cluster.answer("/data/whole")
    assert alike(result) == alike(here)
    assert set(places.values()) == {""}
    assert [(o["step"], o["rank"], o["call"]) for o in result["origins"]] == [
        (1, 4, "Torch.log.0.forward")
    ]


def test_a_flag_says_the_same(cluster: Cluster, tmp_path: Path) -> None:
    spread(cluster, faulty_run(tmp_path / "whole"), "flag", {1: [0, 1, 2, 3, 4, 5]})
    result, nodes, log = cluster.answer("--per-node", "/home/flag")
    assert result["dump"] == "node:///home/flag"
    assert len(set(nodes.values())) == 1
    assert log.count("/home/flag does not exist") == 2
    assert len(result["origins"]) == 1


def test_a_disk_that_all_share_is_read_by_any(cluster: Cluster, tmp_path: Path) -> None:
    shutil.copytree(faulty_run(tmp_path / "whole"), cluster.shared / "same")
    result, nodes, _ = cluster.answer("node:///data/same")
    assert set(nodes.values()) == {""}
    assert result["warnings"] == []
    assert result["read"]["ranks"] == RANKS


def test_a_rank_found_twice_and_one_found_nowhere(cluster: Cluster, tmp_path: Path) -> None:
    spread(cluster, faulty_run(tmp_path / "old", ranks=5), "twice", {2: [1]})
    time.sleep(0.05)  # it is written later
    spread(cluster, faulty_run(tmp_path / "new"), "twice", {0: [0, 1], 1: [2, 3, 4]})
    result, nodes, _ = cluster.answer("node:///home/twice")
    first, _, third = (host.address for host in cluster.network.hosts)
    told = [(w["code"], w["step"], w["rank"]) for w in result["warnings"]]
    assert ("rank_twice", 0, 1) in told
    assert ("rank_twice", 1, 1) in told
    assert ("rank_missing", 1, 5) in told
    assert ("rank_missing", 1, 0) not in told
    (text,) = {
        w["text"].partition(": ")[2] for w in result["warnings"] if w["code"] == "rank_twice"
    }
    assert third in text.partition(" and ")[0]
    assert f"that of {first} " in text
    assert nodes[1].startswith(f"{first} ")


def test_found_on_no_node(cluster: Cluster) -> None:
    done = cluster.analyze("node:///home/nowhere")
    assert done.returncode == 2
    (line,) = [text for text in done.stderr.splitlines() if text.startswith("crossrank:")]
    assert line.count("/home/nowhere does not exist") == 3
    assert "Traceback" not in done.stderr


def test_one_machine_needs_no_ray(cluster: Cluster, tmp_path: Path) -> None:
    whole = faulty_run(tmp_path / "whole")
    spread(cluster, whole, "alone", {0: [0, 3]})
    local = ["--engine", "local", "--out", "/home/alone_answer"]
    command = cluster.command("node:///home/alone", *local)
    done = subprocess.run(command, env=cluster.variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "this machine: holds 4 shards" in done.stderr
    assert "ray" not in done.stderr.lower().replace(str(ROOT).lower(), "")


class TestALostNode:
    """Hosts go away one after the other; these tests come last."""

    def lose(self, cluster: Cluster, number: int, place: str, out: str) -> dict[str, Any]:
        """Return the answer of a run in the middle of which a host is switched off."""
        where = ["--address", f"{cluster.head.address}:6379", "--out", f"/data/{out}"]
        command = cluster.command(place, *where, "--workers", "64")
        run = subprocess.Popen(command, env=cluster.variables, stderr=subprocess.PIPE, text=True)
        work = cluster.shared / f".{out}.unfinished"
        while run.poll() is None and batches_done(work) < 6:
            time.sleep(0.02)
        assert run.poll() is None, "it was over before a node could be lost"
        cluster.network.hosts[number].end()
        _, log = run.communicate()
        assert run.returncode == 0, log
        assert not work.exists()
        result: dict[str, Any] = json.loads((cluster.shared / out / "result.json").read_text())
        assert result["origins"][0]["rank"] == 4
        return result

    def test_shards_on_its_own_disk_are_named(self, cluster: Cluster, tmp_path: Path) -> None:
        whole = faulty_run(tmp_path / "whole", ranks=64)
        spread(cluster, whole, "own", {0: range(32), 2: range(32, 64)})
        result = self.lose(cluster, 2, "node:///home/own", "own_answer")
        lost = [w for w in result["warnings"] if w["code"] == "shard_unreadable"]
        assert lost
        assert {w["rank"] for w in lost} <= set(range(32, 64))
        assert result["read"]["ranks"] == 64 - len({w["rank"] for w in lost})
        address = cluster.network.hosts[2].address
        assert all(f"{address} (" in w["text"] for w in lost), lost

    def test_what_it_had_begun_is_done_elsewhere(self, cluster: Cluster, tmp_path: Path) -> None:
        shutil.copytree(faulty_run(tmp_path / "whole", ranks=64), cluster.shared / "many")
        result = self.lose(cluster, 1, "/data/many", "many_answer")
        assert result["read"]["ranks"] == 64
        assert result["warnings"] == []
        assert len(result["origins"][0]["reached"]) == 63

    def test_ranks_that_went_with_it(self, cluster: Cluster) -> None:
        """Its disk is gone: the answer names what it lacks."""
        result, nodes, _ = cluster.answer("node:///home/own")
        missing = {w["rank"] for w in result["warnings"] if w["code"] == "rank_missing"}
        assert missing == set(range(32, 64))
        assert set(nodes) == set(range(32))
        assert result["origins"][0]["rank"] == 4
