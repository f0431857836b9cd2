from __future__ import annotations

import pytest

LOCAL = "step rank seq entry kind certainty slots found dtype weight name api phase module"
COMMUNICATION = (
    "step instance rank seq name api dtype overflows brought group_size certainty found slots"
)
SATURATIONS = "step rank seq slots dtype name api phase module"


def test_a_place_on_a_rank_itself(ask) -> None:
    db = ask("nan/candidates").table(
        "local_origins",
        LOCAL,
        "2 1 3 birth compute order [output.0] [nan,inf] float32 false Torch.log.0.forward log "
        "forward mlp",
    )
    assert db.rows() == [
        (
            *(2, 1, 3, "compute", "birth", "order", ["nan", "inf"], ["output.0"], "float32"),
            *("forward", "Torch.log.0.forward", "log", "mlp", None, [], None, None),
        )
    ]


def test_a_communication_instance_is_one_place_seen_at_its_lowest_rank(ask) -> None:
    db = ask("nan/candidates").table(
        "communication_origins",
        COMMUNICATION,
        "0 i 3 8 all_reduce.9 all_reduce float16 true 7e4 4 order [nan] [output.1]",
        "0 i 1 5 all_reduce.2 all_reduce float16 true 7e4 4 lineage [inf] [output.0]",
    )
    members = [
        {"rank": 1, "seq": 5, "call": "all_reduce.2"},
        {"rank": 3, "seq": 8, "call": "all_reduce.9"},
    ]
    assert db.rows() == [
        (
            *(0, 1, 5, "communication", "received", "lineage", ["inf"], ["output.0"], "float16"),
            *("forward", "all_reduce.2", "all_reduce", None, "i", members, 70000.0, 4),
        )
    ]


@pytest.mark.parametrize(
    ("overflows", "kind"),
    [("true true", "communication"), ("true false", "communication"), ("false false", "gap")],
)
def test_an_instance_that_cannot_overflow_is_a_gap(ask, overflows: str, kind: str) -> None:
    db = ask("nan/candidates").table(
        "communication_origins",
        "step instance rank seq overflows",
        *(f"0 i {rank} 5 {word}" for rank, word in enumerate(overflows.split())),
    )
    assert db.rows("rank kind") == [(0, kind)]


@pytest.mark.parametrize(
    ("in_backward", "phase"),
    [
        ("true true", "backward"),
        ("true false", "backward"),
        ("false false", "forward"),
        ("- -", "forward"),
    ],
)
def test_an_instance_after_a_backward_call_of_any_rank_is_of_backward(
    ask, in_backward: str, phase: str
) -> None:
    db = ask("nan/candidates").table(
        "communication_origins",
        "step instance rank seq in_backward",
        *(f"0 i {rank} 5 {word}" for rank, word in enumerate(in_backward.split())),
    )
    assert db.rows("rank phase") == [(0, phase)]


def test_instances_are_places_of_their_own(ask) -> None:
    db = ask("nan/candidates").table(
        "communication_origins",
        "step instance rank seq",
        "0 i 0 5",
        "0 j 0 7",
        "1 i 0 5",
    )
    assert db.rows("step seq instance") == [(0, 5, "i"), (0, 7, "j"), (1, 5, "i")]


def test_a_saturated_result_in_a_step_without_a_bad_value(ask) -> None:
    db = ask("nan/candidates").table(
        "saturations", SATURATIONS, "2 1 3 [output.0] float16 Torch.mul.0.forward mul forward mlp"
    )
    assert db.rows() == [
        (
            *(2, 1, 3, "compute", "saturated", "order", ["saturated"], ["output.0"], "float16"),
            *("forward", "Torch.mul.0.forward", "mul", "mlp", None, [], None, None),
        )
    ]


def test_no_saturated_result_in_a_step_with_a_bad_value(ask) -> None:
    db = ask("nan/candidates").table("onsets", "step rank seq entry", "0 1 9 received")
    db.table("saturations", "step rank seq", "0 0 3", "1 0 4")
    assert db.rows("step rank seq") == [(1, 0, 4)]


def test_places_of_all_kinds_side_by_side(ask) -> None:
    db = ask("nan/candidates")
    db.table("local_origins", "step rank seq entry", "1 1 3 import", "0 1 9 birth", "1 1 3 birth")
    db.table("communication_origins", "step instance rank seq", "0 i 0 20", "0 i 1 2")
    assert db.rows("step rank seq entry") == [
        (0, 0, 20, "received"),
        (0, 1, 9, "birth"),
        (1, 1, 3, "birth"),
        (1, 1, 3, "import"),
    ]


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/candidates").rows() == []
