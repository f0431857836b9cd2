"""Names that stand for others, as users write them for msprobe."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.readers.mappings import MappingError, read_mapping

FILES = {
    "api": "- {ms_api: mint.nn.functional.dense, pt_api: torch.nn.functional.linear}\n",
    "cell": "backbone.0.MyBlock: encoder.layers.0.Block\n",
    "layer": "MyBlock: {my_mlp: mlp}\n",
    "data": "Cell.a.A.forward.0.input.0: Module.b.B.forward.0.input.0\n"
    "Cell.a.A.forward.0.output.0: Module.b.B.forward.0.output.0\n",
}
NAMES = {
    "api": [("api", "dense", "linear")],
    "cell": [("path", "backbone.0", "encoder.layers.0")],
    "layer": [("child", "my_mlp", "mlp")],
    "data": [("call", "Cell.a.A.forward.0", "Module.b.B.forward.0")],
}


@pytest.mark.parametrize("kind", FILES)
def test_names(kind: str, tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(FILES[kind])
    assert read_mapping(kind, tmp_path / "map.yaml") == NAMES[kind]


@pytest.mark.parametrize("text", ["just words", "[1, 2]", "{a: [", "!!python/object:os.system {}"])
def test_what_is_no_mapping(text: str, tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(MappingError, match=r"map\.yaml"):
        read_mapping("api", tmp_path / "map.yaml")
