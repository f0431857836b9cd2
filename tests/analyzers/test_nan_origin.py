"""Planted faults: the origin, its kind, the ranks it reached, and what is no fault."""

from __future__ import annotations

import math
from pathlib import Path

from ..conftest import Analyze
from ..dumps import Run, Shard, Value, args, bad

REDUCE = "Distributed.all_reduce.{}.forward"


def origin_of(result: dict) -> tuple:
    """Return (step, rank, call, kind) of the only origin."""
    (origin,) = result["origins"]
    return origin["step"], origin["rank"], origin["call"], origin["kind"]


def path_to(result: dict, rank: int) -> list[tuple[int, str]]:
    (row,) = (r for r in result["ranks"] if r["rank"] == rank)
    return [(hop["rank"], hop["call"]) for hop in row["path"]]


def reduce(shard: Shard, number: int, value: Value, result: Value, **columns) -> Value:
    (out,) = shard.comm(REDUCE.format(number), [value], [result], reduce_op="SUM", **columns)
    return out


class TestSpread:
    def test_plain_spread_through_all_reduce(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=4)
        for rank in range(4):
            shard = run.rank(rank)
            (x,) = shard.call("Torch.relu.0.forward", [Value()], [Value()])
            (y,) = shard.call("Torch.matmul.17.forward", [x], [Value(nan=3 * (rank == 2))])
            z = reduce(shard, 20, y, Value(nan=3))
            shard.call("Torch.mul.0.forward", [z], [bad(nan=8)])
        result = analyze(run.write())
        assert result["verdict"] == "found"
        assert origin_of(result) == (0, 2, "Torch.matmul.17.forward", "compute")
        assert result["origins"][0]["reached"] == [0, 1, 3]
        assert result["origins"][0]["certainty"] == "lineage"
        assert path_to(result, 3) == [
            (2, "Torch.matmul.17.forward"),
            (2, "Distributed.all_reduce.20.forward"),
            (3, "Distributed.all_reduce.20.forward"),
        ]

    def test_pipeline_stages_order_by_pairing(self, tmp_path: Path, analyze: Analyze) -> None:
        """Stage 3 receives earlier, by its own count of calls, than stage 1 makes the NaN."""
        run = Run(tmp_path / "dump", ranks=4)
        for rank in range(4):
            shard, x = run.rank(rank), Value()
            if rank:
                (x,) = shard.comm(
                    "Distributed.recv.0.forward",
                    [Value(role="buffer")],
                    [bad(nan=8) if rank > 1 else Value()],
                    peer=rank - 1,
                )
            for number in range(10 if rank == 1 else 1):
                (x,) = shard.call(f"Torch.mul.{number}.forward", [x], [x])
            (y,) = shard.call("Torch.log.0.forward", [x], [bad(nan=8) if rank else Value()])
            if rank < 3:
                shard.comm("Distributed.send.0.forward", [y], peer=rank + 1)
        result = analyze(run.write())
        assert origin_of(result) == (0, 1, "Torch.log.0.forward", "compute")
        assert result["origins"][0]["reached"] == [2, 3]
        assert [hop[0] for hop in path_to(result, 3)] == [1, 1, 2, 2, 3]

    def test_same_name_in_two_groups(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=4)
        tensor_parallel, data_parallel = ([0, 1], [2, 3]), ([0, 2], [1, 3])
        for rank in range(4):
            shard = run.rank(rank)
            (x,) = shard.call("Torch.log.0.forward", [Value()], [Value(nan=int(rank == 0))])
            mine = next(g for g in tensor_parallel if rank in g)
            y = reduce(shard, 0, x, Value(nan=int(rank < 2)), group=mine)
            mine = next(g for g in data_parallel if rank in g)
            z = reduce(shard, 1, y, Value(nan=1), group=mine)
            shard.call("Torch.mul.0.forward", [z], [Value(nan=1)])
        result = analyze(run.write())
        assert origin_of(result) == (0, 0, "Torch.log.0.forward", "compute")
        first = {r["rank"]: r["first_symptom"]["call"] for r in result["ranks"]}
        assert first[1] == REDUCE.format(0)
        assert (first[2], first[3]) == (REDUCE.format(1), REDUCE.format(1))
        assert path_to(result, 2)[0] == (0, "Torch.log.0.forward")

    def test_two_independent_origins(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=8)
        for rank in range(8):
            shard = run.rank(rank)
            (x,) = shard.call("Torch.div.0.forward", [Value()], [Value(nan=int(rank in (0, 5)))])
            y = reduce(shard, 0, x, Value(nan=1))
            shard.call("Torch.mul.0.forward", [y], [Value(nan=1)])
        result = analyze(run.write())
        assert [(o["rank"], o["call"]) for o in result["origins"]] == [
            (0, "Torch.div.0.forward"),
            (5, "Torch.div.0.forward"),
        ]
        assert result["origins"][1]["reached"] == [0, 1, 2, 3, 4, 6, 7]

    def test_dirty_receive_buffer_is_no_anomaly(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=2)
        run.rank(0).comm("Distributed.send.0.forward", [Value()], peer=1)
        (x,) = run.rank(1).comm(
            "Distributed.recv.0.forward",
            [bad(nan=8).but(role="buffer")],
            [Value()],
            peer=0,
        )
        run.rank(1).call("Torch.mul.0.forward", [x], [Value()])
        result = analyze(run.write())
        assert (result["verdict"], result["origins"], result["warnings"]) == ("clean", [], [])


class TestCommunication:
    def test_sum_leaves_the_range(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=2)
        for rank in range(2):
            reduce(
                run.rank(rank),
                0,
                Value(max=40000.0, dtype="float16"),
                Value(max=None, inf=8, dtype="float16"),
            )
        result = analyze(run.write())
        assert origin_of(result) == (0, 0, REDUCE.format(0), "communication")
        (origin,) = result["origins"]
        assert origin["members"] == [{"rank": r, "call": REDUCE.format(0)} for r in (0, 1)]
        assert origin["values"] == ["inf"]
        assert "leaves the dtype's range" in origin["hint"]

    def test_sum_that_cannot_overflow_was_changed(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=2)
        for rank in range(2):
            small = Value(max=4.0, dtype="float16")
            reduce(run.rank(rank), 0, small, Value(max=None, inf=8, dtype="float16"))
        assert origin_of(analyze(run.write()))[3] == "gap"

    def test_missing_rank_is_the_suspect(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=3)
        for rank in range(3):
            y = reduce(run.rank(rank), 0, Value(nan=int(rank == 2)), Value(nan=1))
            run.rank(rank).call("Torch.mul.0.forward", [y], [Value(nan=1)])
        result = analyze(run.write(without=[2]))
        assert origin_of(result) == (0, 2, REDUCE.format(0), "unrecorded")
        assert [(w["code"], w["rank"]) for w in result["warnings"]] == [("rank_missing", 2)]

    def test_missing_rank_that_was_handed_it_is_a_relay(
        self, tmp_path: Path, analyze: Analyze
    ) -> None:
        run = Run(tmp_path / "dump", ranks=3)
        (x,) = run.rank(0).call("Torch.log.0.forward", [Value()], [bad(nan=8)])
        run.rank(0).comm("Distributed.send.0.forward", [x], peer=1)
        run.rank(1)
        (y,) = run.rank(2).comm(
            "Distributed.recv.0.forward", [Value(role="buffer")], [bad(nan=8)], peer=1
        )
        run.rank(2).call("Torch.mul.0.forward", [y], [bad(nan=8)])
        result = analyze(run.write(without=[1]))
        assert origin_of(result) == (0, 0, "Torch.log.0.forward", "compute")
        assert result["origins"][0]["reached"] == [2]

    def test_collectives_that_do_not_match(self, tmp_path: Path, analyze: Analyze) -> None:
        cases = {
            "operation": ("Distributed.all_reduce.0.forward", "Distributed.broadcast.0.forward"),
            "dtype": (Value(), Value(dtype="bfloat16")),
            "shape": (Value(), Value(shape=(4,))),
        }
        for what, (here, there) in cases.items():
            run = Run(tmp_path / what, ranks=2)
            for rank, side in enumerate((here, there)):
                name = side if isinstance(side, str) else REDUCE.format(0)
                value = side if isinstance(side, Value) else Value()
                run.rank(rank).comm(name, [value], [value])
            (warning,) = analyze(run.write())["warnings"]
            assert warning["code"] == "collective_mismatch"
            assert f"the {what} differs" in warning["text"]


class TestBirth:
    def test_weight_already_bad(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=2)
        for rank in range(2):
            weight = Value(nan=1, requires_grad=True, direction="parameter")
            (y,) = run.rank(rank, step=9).call(
                "Functional.linear.4.forward",
                [Value(), weight.but(slot="input.1")],
                [bad(nan=8)],
            )
            run.rank(rank, step=9).call("Torch.mul.0.forward", [y], [bad(nan=8)])
        result = analyze(run.write())
        assert {(o["step"], o["rank"], o["kind"]) for o in result["origins"]} == {
            (9, 0, "parameter"),
            (9, 1, "parameter"),
        }
        assert result["origins"][0]["hint"] == "look at backward and optimizer of step 8"

    def test_weight_spoilt_in_the_step_before(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=1)
        (weight,) = run.rank(0, 8).call(
            "Tensor.addcdiv_.0.forward",
            [Value(requires_grad=True, direction="parameter"), Value(max=0.0)],
            [Value(nan=1, requires_grad=True)],
            phase="optimizer",
        )
        run.rank(0, 9).call("Functional.linear.0.forward", [Value(), weight], [bad(nan=8)])
        result = analyze(run.write())
        assert origin_of(result) == (8, 0, "Tensor.addcdiv_.0.forward", "optimizer")
        (later,) = (r for r in result["ranks"] if r["step"] == 9)
        assert later["origin"] == 0

    def test_inf_then_nan(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (a,) = run.rank(0).call("Torch.exp.0.forward", [Value(max=800.0)], [Value(inf=1)])
        run.rank(0).call("Torch.sub.0.forward", [a, a], [Value(nan=1)])
        dump = run.write()
        assert origin_of(analyze(dump)) == (0, 0, "Torch.exp.0.forward", "compute")
        assert origin_of(analyze(dump, nan_only=True)) == (0, 0, "Torch.sub.0.forward", "compute")

    def test_backward_origin_shows_its_forward_line(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        shard = run.rank(0)
        (y,) = shard.call(
            "Torch.sqrt.0.forward", [Value()], [Value()], stack="train.py:88 in step | y = sqrt(x)"
        )
        shard.call("Torch.mul.0.forward", [y], [Value(max=0.0)])
        (g,) = shard.call("Torch.mul.0.backward", [Value()], [Value(max=0.0)])
        shard.call("Torch.sqrt.0.backward", [g], [Value(nan=1)])
        result = analyze(run.write())
        assert origin_of(result) == (0, 0, "Torch.sqrt.0.backward", "compute")
        assert result["origins"][0]["stack"] == ["train.py:88 in step"]

    def test_backward_of_a_bad_forward_is_a_consequence(
        self, tmp_path: Path, analyze: Analyze
    ) -> None:
        run = Run(tmp_path / "dump")
        (y,) = run.rank(0).call("Torch.log.0.forward", [Value()], [Value(neginf=1)])
        run.rank(0).call("Torch.mul.0.forward", [y, y], [Value(inf=1)])
        run.rank(0).call("Torch.mul.0.backward", [Value()], [Value(neginf=1)])
        assert origin_of(analyze(run.write())) == (0, 0, "Torch.log.0.forward", "compute")

    def test_saturated_at_the_limit(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        full = Value(max=65504.0, dtype="float16", saturated=True)
        run.rank(0).call("Torch.exp.0.forward", [Value(max=12.0, dtype="float16")], [full])
        result = analyze(run.write())
        assert origin_of(result) == (0, 0, "Torch.exp.0.forward", "compute")
        assert result["origins"][0]["values"] == ["saturated"]

    def test_limit_asked_for_is_not_saturation(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        mask = Value(min=-65504.0, dtype="float16", saturated=True)
        run.rank(0).call(
            "Tensor.masked_fill.0.forward",
            [Value(dtype="float16")],
            [mask],
            args=args(input_2=-65504.0),
        )
        run.rank(0).call("Tensor.__add__.0.forward", [mask, Value(dtype="float16")], [mask])
        assert analyze(run.write())["verdict"] == "clean"

    def test_lost_value_is_a_gap(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (x,) = run.rank(0).call("Torch.mul.0.forward", [Value()], [Value()])
        run.rank(0).call("Torch.add.0.forward", [x.but(nan=1)], [Value(nan=1)])
        assert origin_of(analyze(run.write())) == (0, 0, "Torch.add.0.forward", "gap")

    def test_memory_read_before_it_was_written(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (x,) = run.rank(0).call("Torch.empty.0.forward", [], [Value(nan=2, role="buffer")])
        run.rank(0).call("Torch.add.0.forward", [x.but(role="value")], [Value(nan=2)])
        assert origin_of(analyze(run.write())) == (0, 0, "Torch.add.0.forward", "uninitialized")

    def test_memory_that_nobody_reads_is_no_fault(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        run.rank(0).call("Torch.empty.0.forward", [], [Value(nan=2, role="buffer")])
        run.rank(0).call("Torch.add.0.forward", [Value()], [Value()])
        assert analyze(run.write())["verdict"] == "clean"

    def test_bad_batch(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (y,) = run.rank(0).call("Functional.linear.0.forward", [Value(nan=1)], [Value(nan=1)])
        run.rank(0).call("Torch.mul.0.forward", [y], [Value(nan=1)])
        result = analyze(run.write())
        assert origin_of(result) == (0, 0, "Functional.linear.0.forward", "input")
        assert result["origins"][0]["slots"] == ["input.0"]


class TestBenign:
    def test_mask_consumed_by_softmax(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (scores,) = run.rank(0).call(
            "Tensor.masked_fill.0.forward",
            [Value()],
            [Value(neginf=1)],
            args=args(input_2=-math.inf),
        )
        run.rank(0).call("Torch.softmax.0.forward", [scores], [Value()])
        result = analyze(run.write())
        assert (result["verdict"], result["origins"]) == ("clean", [])
        (benign,) = result["benign"]
        assert benign["call"] == "Tensor.masked_fill.0.forward"
        assert "finite" in benign["reason"]

    def test_row_masked_entirely(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (scores,) = run.rank(0).call(
            "Tensor.masked_fill.0.forward",
            [Value()],
            [bad(neginf=3)],
            args=args(input_2=-math.inf),
        )
        (weights,) = run.rank(0).call("Torch.softmax.0.forward", [scores], [bad(nan=3)])
        run.rank(0).call("Torch.matmul.0.forward", [weights], [bad(nan=3)])
        result = analyze(run.write())
        assert origin_of(result) == (0, 0, "Torch.softmax.0.forward", "compute")
        assert "row with only -inf" in result["origins"][0]["reason"]

    def test_infinity_of_arithmetic_is_not_excused(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (scores,) = run.rank(0).call("Torch.log.0.forward", [Value()], [bad(neginf=3)])
        run.rank(0).call("Torch.softmax.0.forward", [scores], [bad(nan=3)])
        assert origin_of(analyze(run.write())) == (0, 0, "Torch.log.0.forward", "compute")

    def test_mask_broadcast_to_others_and_consumed(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump", ranks=2)
        (mask,) = run.rank(0).call(
            "Torch.full.0.forward", [], [bad(neginf=8)], args=args(input_1=-math.inf)
        )
        for rank in range(2):
            value = mask if rank == 0 else Value(role="buffer")
            (got,) = run.rank(rank).comm(
                "Distributed.broadcast.0.forward", [value], [bad(neginf=8)], root=0
            )
            run.rank(rank).call("Torch.softmax.0.forward", [got], [Value()])
        assert analyze(run.write())["verdict"] == "clean"

    def test_clamp_that_is_on_record(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (x,) = run.rank(0).call("Torch.exp.0.forward", [Value(max=800.0)], [Value(inf=1)])
        run.rank(0).call("Torch.clamp.0.forward", [x], [Value()])
        result = analyze(run.write())
        assert result["verdict"] == "clean"
        assert [b["call"] for b in result["benign"]] == ["Torch.exp.0.forward"]

    def test_looking_at_a_nan_does_not_absorb_it(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        (x,) = run.rank(0).call("Torch.log.0.forward", [Value()], [Value(nan=1)])
        run.rank(0).call("Torch.isnan.0.forward", [x], [Value(dtype="bool")])
        assert origin_of(analyze(run.write())) == (0, 0, "Torch.log.0.forward", "compute")


class TestLossScale:
    def overflow(self, run: Run, step: int, *, bad_gradient: bool) -> None:
        shard = run.rank(0, step)
        x = Value(dtype="float16")
        (y,) = shard.call("Functional.linear.0.forward", [x], [x])
        gradient = Value(dtype="float16", inf=int(bad_gradient))
        shard.call("Functional.linear.0.backward", [y], [gradient])

    def test_skipped_steps_that_recovered(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        for step in range(5):
            self.overflow(run, step, bad_gradient=step < 3)
        result = analyze(run.write())
        assert (result["verdict"], result["origins"]) == ("clean", [])
        assert [b["step"] for b in result["benign"]] == [0, 1, 2]
        assert "step 3 is finite" in result["benign"][0]["reason"]

    def test_scale_that_never_recovers(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        for step in range(4):
            self.overflow(run, step, bad_gradient=True)
        result = analyze(run.write())
        assert result["verdict"] == "found"
        assert result["origins"][0]["call"] == "Functional.linear.0.backward"


class TestUnknown:
    def test_nothing_judged_is_unknown(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        run.rank(0).call("Torch.add.0.forward", [], [])
        assert analyze(run.write())["verdict"] == "unknown"

    def test_incomplete_step_is_named(self, tmp_path: Path, analyze: Analyze) -> None:
        run = Run(tmp_path / "dump")
        run.rank(0).call("Torch.add.0.forward", [Value()], [Value()])
        run.rank(0).complete = False
        (warning,) = analyze(run.write())["warnings"]
        assert (warning["code"], warning["step"], warning["rank"]) == ("step_incomplete", 0, 0)
