"""The faults of the incumbent's dumps under tests/data/nan, planted again and recorded by us.

Each truth there names step, rank, kind and call of what went wrong in a real run; the same fault,
in a small model that is split in the same way, has to lead to the same answer and, beyond it, to
the line that is marked with it, and by lineage.

Left out, as our collector would only repeat another case:
  A02b_compute_tp4_allreduce_mix   A02, at a level that lists modules beside calls; with us each
                                   call says which module it belongs to
"""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ..conftest import Analyze, truths
from . import same_faults_collectives as collectives
from . import same_faults_damage as damage
from . import same_faults_data as data
from . import same_faults_layers as layers
from . import same_faults_models as models
from . import same_faults_pipeline as pipeline
from . import same_faults_tensor as tensor
from .same_faults import Scenario, run_ranks

SOURCES = (collectives, data, layers, models, pipeline, tensor)


@dataclass(frozen=True)
class Again:
    """How a case is run again.

    Args:
        scenario: what every rank does.
        world: number of ranks.
        tp: how many of them share a layer.
        mark: name at the line of the fault; empty: the scenario's own.
        reached: for each origin's rank, the ranks it reached, where the truth leaves that open.
        call: what stands in our record where it is not the incumbent's call.
        benign: calls that are benign besides those of the truth: (rank, call).
        damage: what happens to the dump before it is read.
        hurt: the rank whose record is damaged.
        source: whether the line is known.
    """

    scenario: Scenario
    world: int
    tp: int = 1
    mark: str = ""
    reached: dict[int, list[int]] = field(default_factory=dict)
    call: str = ""
    benign: tuple[tuple[int, str], ...] = ()
    damage: Callable[[Path, int], None] | None = None
    hurt: int = -1
    source: bool = True


RUNS = {
    "A01_clean_tp2": Again(tensor.clean_block, 2, tp=2),
    "A01b_clean_tp2dp2_mix": Again(tensor.clean_mlp, 4, tp=2),
    "A02_compute_tp4_allreduce": Again(tensor.energy, 4),
    "A02d_tp2dp2_layer1_origin": Again(tensor.second_layer, 4, tp=2),
    "A03_pp4_stage0_send": Again(pipeline.pipeline, 4),
    "A03c_pp4_stage0_batch_isend_irecv": Again(pipeline.batched, 4, mark="pipeline"),
    "A03d_pp4_stage1_mb1_send": Again(pipeline.second_microbatch, 4, mark="pipeline"),
    "A03f_pp4_stage2_after_recv_isend": Again(pipeline.third_stage, 4),
    "A04_backward_tp2": Again(tensor.slope_of_root, 2, tp=2),
    "A04c_backward_absorbed_tp2": Again(tensor.absorbed_slope, 2, tp=2),
    "A05_comm_fp16_allreduce_overflow": Again(data.half_sum, 4, reached={0: []}),
    "A06_two_ranks_dp4": Again(data.two_ranks, 4, reached={0: [1, 2, 3], 3: [0, 1, 2]}),
    "A07_tp2dp2_cross_groups": Again(tensor.both_groups, 4, tp=2),
    "A08_input_data_dp2": Again(data.bad_batch, 2),
    "A09_bad_param_tp2": Again(tensor.bad_weight, 2, tp=2, reached={0: [1]}),
    "A10_legit_inf_mask_tp2": Again(tensor.masked, 2, tp=2),
    "A11_legit_mask_plus_real_nan_tp2": Again(tensor.masked_then_divided, 2, tp=2),
    "A12_broadcast_rank0": Again(collectives.handed_out, 4),
    "A12b_broadcast_src2_subgroup": Again(collectives.handed_out_in_a_pair, 4, tp=2),
    # the incumbent has no record of torch.full; with us it stands there, and as benign
    "A12c_garbage_recv_buffers_clean": Again(
        collectives.garbage_in_buffers,
        2,
        benign=tuple(
            (rank, f"Torch.full.{n}.forward") for rank in range(2) for n in range(4 + 2 * rank)
        ),
    ),
    "A13_ep4_all_to_all_single": Again(collectives.expert, 4),
    "A14_async_allreduce_dp2": Again(data.waited_for_later, 2),
    "A15_missing_origin_rank": Again(
        tensor.energy, 4, reached={2: [0, 1, 3]}, damage=damage.lose_rank, hurt=2, source=False
    ),
    "A15b_missing_innocent_rank": Again(
        tensor.energy, 4, reached={2: [0, 3]}, damage=damage.lose_rank, hurt=1
    ),
    "A16_truncated_json_innocent_rank": Again(
        data.two_ranks,
        4,
        reached={0: [1, 2, 3], 3: [0, 1, 2]},
        damage=damage.cut_last_part,
        hurt=1,
    ),
    "A16b_truncated_json_origin_rank": Again(
        tensor.energy, 4, reached={2: [0, 1, 3]}, damage=damage.lose_last_part, hurt=2
    ),
    "A16d_no_stack_json": Again(
        tensor.both_groups, 4, 2, reached={3: [0, 1, 2]}, damage=damage.lose_stacks, source=False
    ),
    "A17_multistep_origin_step2_dp2": Again(data.third_step, 2),
    "A18_zero3_style_dp2": Again(data.sharded_by_hand, 2),
    # the incumbent does not see FSDP's reduction of gradients: its truth leaves open who got it
    "A18b_torch_fsdp2_dp2": Again(data.sharded_by_torch, 2, reached={1: [0]}),
    # an update is one call with us, and the line is the script's
    "A19b_optimizer_step_inside_dump_dp2": Again(
        data.update, 2, reached={0: [], 1: []}, call="Optimizer.Adam.0.step"
    ),
    "A20_fp16_matmul_overflow_tp2": Again(tensor.half_scores, 2, tp=2, reached={1: [0]}),
    "A21_gather_to_rank0_then_scatter": Again(collectives.collected_and_dealt, 4),
    "A22_local_only_nan_no_comm_tp2": Again(tensor.metric, 2, tp=2),
    "A23_real_kill_mid_step_dp2": Again(data.killed, 2, reached={0: [1]}),
    "A24_inf_clamped_benign_dp2": Again(data.clamped, 2),
    "A26_misaligned_counters_tp_extra": Again(
        collectives.extra_in_one_group, 4, tp=2, reached={3: [0, 1, 2]}
    ),
    "A27_missing_relay_rank": Again(
        pipeline.pipeline, 4, reached={0: [2, 3]}, damage=damage.lose_rank, hurt=1
    ),
    "H_bert_scaler_overflow_recovers_L1_1r": Again(models.loss_scale, 1),
    # nor does it see the reduction of DistributedDataParallel
    "H_mixtral_nan_router_bwd_mix_ddp2": Again(models.router, 2, reached={1: [0]}),
    "M_L1_nan_sqrt_bwd_1r": Again(partial(models.gated, form="root of relu", bias=-58.0), 1),
    "M_mix_nan_log_msrun_dp2": Again(models.gated_by_relu, 2, reached={1: [0]}),
    "P122_L1_nan_exp_dp2": Again(
        partial(models.gated, form="exp", bias=120.0), 2, reached={1: [0]}
    ),
    "P832_L1_nan_log_dp2": Again(
        partial(models.gated, form="log of softplus", bias=-300.0), 2, reached={1: [0]}
    ),
}
LEFT_OUT = {"A02b_compute_tp4_allreduce_mix"}


def test_every_case_is_run_again() -> None:
    assert {*RUNS, *LEFT_OUT} == {*truths("nan")}


@pytest.mark.parametrize("case", RUNS)
def test_same_origin(case: str, analyze: Analyze, tmp_path: Path) -> None:
    again, truth, dump = RUNS[case], truths("nan")[case], tmp_path / "dump"
    exits = run_ranks(again.scenario, again.world, again.tp, dump)
    assert exits == [-9 if r == truth.get("killed_rank") else 0 for r in range(again.world)]
    if again.damage:
        again.damage(dump, again.hurt)
    result = analyze(dump)
    assert result["verdict"] == ("found" if truth["anomaly"] else "clean")
    hold_origins_against(truth["origins"], result, again)
    hold_notes_against(truth, result, again)


def test_a_rank_that_was_killed_before_it_wrote(analyze: Analyze, tmp_path: Path) -> None:
    """A23 to the letter: of the killed rank nothing is on disk."""
    truth, dump = truths("nan")["A23_real_kill_mid_step_dp2"], tmp_path / "dump"
    again = Again(data.killed_at_once, 2, mark="killed", reached={0: []})
    assert run_ranks(again.scenario, 2, 1, dump) == [0, -9]
    result = analyze(dump)
    hold_origins_against(truth["origins"], result, again)
    hold_notes_against(truth, result, again)


def hold_origins_against(
    origins: list[dict[str, Any]], result: dict[str, Any], again: Again
) -> None:
    """Those origins are there, by lineage, each with its line, and no others."""
    found = {
        (o["step"], m["rank"]): (o, m["call"])
        for o in result["origins"]
        for m in o.get("members") or [o]
    }
    assert sorted(found) == sorted((o["step"], o["rank"]) for o in origins)
    for origin in origins:
        got, call = found[origin["step"], origin["rank"]]
        assert operation(call) == operation(again.call or origin["call"])
        assert got["kind"] == origin["kind"]
        assert got["certainty"] == ("order" if origin["kind"] == "unrecorded" else "lineage")
        assert got["reached"] == origin.get("reached", again.reached.get(got["rank"]))
        if again.source:
            name = again.mark or getattr(again.scenario, "func", again.scenario).__name__
            assert f"{marked(f'{name} {operation(call)[0]}')} in " in got["source"]
        else:
            assert got["source"] is None
        if "slot" in origin:
            assert got["slots"] == [origin["slot"].replace("input_args", "input")]
        if "param" in origin:
            assert got["module"] == origin["param"].rpartition(".")[0]


def hold_notes_against(truth: dict[str, Any], result: dict[str, Any], again: Again) -> None:
    """The benign values and the missing and damaged ranks are those of the truth, no others."""
    listed = {(b["step"], b["rank"], b["call"]) for b in result["benign"]}
    known = {(b["step"], b["rank"], b["call"]) for b in truth.get("benign", [])}
    known |= {(0, rank, call) for rank, call in again.benign}
    for step, rank, call in known:
        assert [b for b in listed if b[:2] == (step, rank) and same_operation(b[2], call)]
    for step, rank, call in listed:
        assert [b for b in known if b[:2] == (step, rank) and same_operation(call, b[2])], call
    told = {(w["code"], w["rank"]) for w in result["warnings"]}
    missing = {("rank_missing", rank) for rank in truth.get("missing_ranks", [])}
    cut = {*truth.get("truncated_ranks", []), truth.get("killed_rank")} - {None}
    codes = {"shard_unreadable", "step_incomplete"}
    assert missing == {t for t in told if t[0] not in codes}
    assert cut == {rank for code, rank in told if code in codes}


def operation(call: str) -> tuple[str, str, str]:
    """Return function, running number and phase of a call; prefixes differ between frameworks."""
    api, number, phase = call.split(".")[-3:]
    return api, number, phase


def same_operation(call: str, pattern: str) -> bool:
    return pattern == "*" or fnmatch.fnmatch(
        ".".join(operation(call)), ".".join(operation(pattern))
    )


def marked(name: str) -> str:
    """Return file and line, as a finding names them, of the line marked with a fault."""
    for source in SOURCES:
        path = Path(inspect.getfile(source))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.endswith(f"  # fault: {name}"):
                return f"{path.name}:{number}"
    raise AssertionError(f"no line is marked {name}")
