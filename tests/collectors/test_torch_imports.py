"""What a training process carries beside its framework: pyarrow, and nothing else of ours."""

from __future__ import annotations

import json
from pathlib import Path

from .recording import ROOT, Record, run_script


def test_a_training_process_loads_no_engine_and_no_database(tmp_path: Path) -> None:
    """Not even after a step that was recorded and written."""
    process = run_script(f"""
    import json
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    debugger = PrecisionDebugger(dump_path={str(tmp_path)!r})
    debugger.start(model)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    debugger.stop()
    debugger.step()
    print(json.dumps([name.partition(".")[0] for name in sys.modules]))
    """)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.returncode == 0, process.stderr.read()
    loaded = set(json.loads(process.stdout.read()))
    assert {"torch", "pyarrow", "collectors"} <= loaded
    unwanted = ("ray", "duckdb", "polars", "pandas", "jinja2", "pipeline", "analyzers", "mindspore")
    assert loaded.isdisjoint(unwanted)
    assert Record(tmp_path).names[-1] == "Optimizer.SGD.0.step"


def test_nothing_is_replaced_by_an_import_or_after_a_stop(tmp_path: Path) -> None:
    process = run_script(f"""
    import threading
    from torch.overrides import _get_current_function_mode_stack as modes
    places = [
        *((torch, name) for name in ("add", "randn", "relu", "matmul")),
        *((torch.Tensor, name) for name in ("add", "backward", "__getitem__")),
        *((torch.nn.functional, name) for name in ("gelu", "linear")),
        (torch.autograd.Function, "apply"), (torch.autograd, "_engine_run_backward"),
        (torch.nn.utils, "clip_grad_norm_"), (torch.UntypedStorage, "resize_"),
        (threading.Thread, "run"), (threading.Thread, "start"),
    ]
    def names():
        return [vars(place).get(name) for place, name in places]
    before = names()
    debugger = PrecisionDebugger(dump_path={str(tmp_path)!r})
    assert [a is b for a, b in zip(names(), before)] == [True] * len(before)
    for _ in range(2):
        debugger.start()
        torch.ones(1)
        debugger.stop()
        assert [a is b for a, b in zip(names(), before)] == [True] * len(before)
        assert modes() == []
        debugger.step()
    print("same")
    """)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read() == "same\n", process.stderr.read()


def test_a_collector_reached_through_a_link_is_not_the_source(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ROOT)
    process = run_script(f"""
    sys.path.insert(0, {str(tmp_path / "link")!r})
    for name in [name for name in sys.modules if name.partition(".")[0] == "collectors"]:
        del sys.modules[name]
    from collectors import PrecisionDebugger
    debugger = PrecisionDebugger(dump_path={str(tmp_path / "dump")!r})
    debugger.start()
    torch.ones(1)
    debugger.stop()
    debugger.step()
    print(sys.modules["collectors"].__file__)
    """)
    assert process.stdout is not None
    assert str(tmp_path / "link") in process.stdout.read()
    (call,) = Record(tmp_path / "dump").calls
    assert call["stack"].startswith("<string>:")
