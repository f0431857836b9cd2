"""RL data that lies on the nodes themselves; here, parts are said to lie on several."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.engine_local import LocalEngine
from pipeline.errors import DumpError
from pipeline.rl_analysis import judge_collections, measure_collections, rl_store
from pipeline.rl_collection import Collection, open_collection
from pipeline.rl_nodes import fetched, laid_out, node_of, open_on_nodes
from pipeline.rl_tasks import Sides, list_samples
from pipeline.settings import limits

from ...rollouts import Rollouts, save, save_npy

RUN = Rollouts()


def spread(source: Collection, nodes: tuple[str, ...]) -> Collection:
    """Say that each rank's parts lie on a node of its own."""
    parts = tuple(replace(part, node=nodes[part.rank]) for part in source.parts)
    return replace(source, parts=parts)


@pytest.mark.parametrize("write", [save, save_npy], ids=["shards", "folders"])
def test_what_lies_on_several_nodes_gives_the_same(compare, tmp_path: Path, write) -> None:
    a, b = write(RUN.engine(), tmp_path / "a"), write(RUN.trainer(1.0), tmp_path / "b")
    whole = compare(a, b)
    sides = Sides(
        spread(open_collection(a), ("n0", "n1")), spread(open_collection(b), ("n1", "n0"))
    )
    with rl_store(limits(1)) as store:
        engine = LocalEngine(1)
        setting = measure_collections(sides, list_samples(sides, engine), store, engine)
        assert judge_collections(sides, setting, store, engine) == whole


def test_only_parts_of_several_nodes_travel(tmp_path: Path) -> None:
    source = open_collection(save(RUN.engine(), tmp_path / "a"))
    assert fetched(source.parts, LocalEngine(1)) == {}
    alone = spread(source, ("n0", "n0")).parts
    assert (fetched(alone, LocalEngine(1)), node_of(alone)) == ({}, "n0")
    apart = spread(source, ("n0", "n1")).parts
    files = fetched(apart, LocalEngine(1))
    assert (len(files), node_of(apart)) == (4, "")
    with laid_out(apart, files) as here:
        copies = [Path(file) for part in here.values() for file in part.files]
        assert len({copy.read_bytes() for copy in copies}) == 4
    assert not any(copy.exists() for copy in copies)


def test_with_node_before_the_folder(tmp_path: Path, capsys) -> None:
    a, b = save(RUN.engine(), tmp_path / "a"), save(RUN.trainer(), tmp_path / "b")
    assert main(["rl", f"node://{a}", f"node://{b}", "--out", str(tmp_path / "o"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["read"]["matched"] == 32


def test_no_node_has_any(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match=r"no node holds RL data under .*nowhere does not exist"):
        open_on_nodes(f"node://{tmp_path}/nowhere", (), LocalEngine(1))
