from __future__ import annotations

import pytest

ENTRIES = (
    "step rank seq entry slots found dtype weight given alive forward_seq name api phase module"
)
PLACES = "step rank seq entry"
UPDATES = "step rank seq entry manner"


def entry(
    place: str, kind: str, *, weight: str = "false", phase: str = "forward", after: str = "-"
) -> str:
    return (
        f"{place} {kind} [output.0] [nan] float32 {weight} false true {after} "
        f"Torch.log.0.forward log {phase} mlp"
    )


def ask_for(ask, *entries: str, lineage: bool, living: list[str] | None = None):
    """Return the question for entries that live, unless said otherwise, the first of each rank."""
    places = [" ".join(row.split()[:4]) for row in entries] if living is None else living
    firsts = {place.rsplit(" ", 2)[0]: place for place in reversed(places)}
    db = ask("nan/local_origins").table("entries", ENTRIES, *entries)
    db.table("living", PLACES, *places).table("onsets", PLACES, *firsts.values())
    ranks = {" ".join(row.split()[:2]) for row in entries}
    return db.table("shards", "step rank lineage", *(f"{rank} {lineage}" for rank in ranks))


def test_every_column_of_an_origin(ask) -> None:
    db = ask_for(ask, entry("2 1 3", "birth"), lineage=False)
    assert db.rows() == [
        (
            *(2, 1, 3, "birth", "compute", "order", ["output.0"], ["nan"], "float32", False),
            *("Torch.log.0.forward", "log", "forward", "mlp"),
        )
    ]


@pytest.mark.parametrize("lineage", [True, False])
@pytest.mark.parametrize(
    ("row", "update", "kind"),
    [
        (entry("0 0 3", "birth"), "", "compute"),
        (entry("0 0 3", "birth", phase="backward"), "", "compute"),
        (entry("0 0 3", "birth", phase="-"), "", "compute"),
        (entry("0 0 3", "birth", phase="optimizer"), "", "optimizer"),
        (entry("0 0 3", "birth"), "0 0 3 birth in_place", "optimizer"),
        (entry("0 0 3", "birth"), "0 0 4 birth in_place", "compute"),
        (entry("0 0 3", "birth"), "0 1 3 birth in_place", "compute"),
        (entry("0 0 3", "birth"), "1 0 3 birth in_place", "compute"),
        (entry("0 0 3", "turned"), "", "compute"),
        (entry("0 0 3", "saved"), "", "input"),
        (entry("0 0 3", "lost"), "", "gap"),
        (entry("0 0 3", "lost", weight="true"), "0 0 3 lost between", "optimizer"),
        (entry("0 0 3", "lost", weight="true"), "", "gap"),
        (entry("0 0 3", "uninitialized"), "", "uninitialized"),
        (entry("0 0 3", "import"), "", "input"),
        (entry("0 0 3", "import", phase="backward"), "", "input"),
        (entry("0 0 3", "import", weight="true"), "", "parameter"),
        (entry("0 0 3", "import", weight="true"), "0 0 3 import between", "optimizer"),
        (entry("0 0 3", "import", weight="true"), "0 0 3 birth in_place", "parameter"),
    ],
)
def test_kind_of_an_origin(ask, lineage: bool, row: str, update: str, kind: str) -> None:
    db = ask_for(ask, row, lineage=lineage)
    db.table("weight_updates", UPDATES, *([update] if update else []))
    certainty = "lineage" if lineage else "order"
    assert db.rows("kind certainty") == [(kind, certainty)]


@pytest.mark.parametrize("lineage", [True, False])
@pytest.mark.parametrize("kind", ["received", "carried"])
def test_not_what_came_from_another_rank_or_step(ask, lineage: bool, kind: str) -> None:
    assert ask_for(ask, entry("0 0 3", kind), lineage=lineage).rows() == []


@pytest.mark.parametrize("lineage", [True, False])
def test_not_what_died_out(ask, lineage: bool) -> None:
    rows = entry("0 0 3", "birth"), entry("0 0 5", "birth")
    db = ask_for(ask, *rows, lineage=lineage, living=["0 0 5 birth"])
    assert db.rows("seq") == [(5,)]


def test_by_order_only_the_first_of_a_rank_and_step(ask) -> None:
    places = ("0 0 3", "0 0 5", "0 1 4", "1 0 2", "1 0 7")
    db = ask_for(ask, *(entry(place, "birth") for place in places), lineage=False)
    assert db.rows("step rank seq") == [(0, 0, 3), (0, 1, 4), (1, 0, 2)]


def test_by_order_nothing_after_a_value_was_received(ask) -> None:
    rows = entry("0 0 3", "received"), entry("0 0 5", "birth"), entry("0 0 7", "import")
    assert ask_for(ask, *rows, lineage=False).rows() == []


def test_by_order_what_a_communication_call_read_not_what_it_received(ask) -> None:
    rows = entry("0 0 3", "import"), entry("0 0 3", "received")
    assert ask_for(ask, *rows, lineage=False).rows("seq entry") == [(3, "import")]


def test_by_order_a_backward_call_after_its_forward_may_be_the_first(ask) -> None:
    row = entry("0 0 3", "birth", phase="backward", after="2")
    assert ask_for(ask, row, lineage=False).rows("seq") == [(3,)]


def test_by_lineage_every_one_that_was_not_received(ask) -> None:
    rows = (
        entry("0 0 2", "received"),
        entry("0 0 3", "birth"),
        entry("0 0 5", "birth"),
        entry("0 0 6", "lost"),
        entry("0 0 7", "carried"),
    )
    assert ask_for(ask, *rows, lineage=True).rows("seq") == [(3,), (5,), (6,)]


def test_by_lineage_not_a_backward_call_that_was_bad_in_its_forward(ask) -> None:
    rows = (
        entry("0 0 3", "birth"),
        entry("0 0 8", "birth", phase="backward", after="2"),
        entry("0 0 9", "birth", phase="backward"),
    )
    assert ask_for(ask, *rows, lineage=True).rows("seq") == [(3,), (9,)]


def test_several_weights_or_inputs_of_a_rank_and_step_are_one(ask) -> None:
    rows = (
        entry("0 0 3", "import", weight="true"),
        entry("0 0 4", "import"),
        entry("0 0 5", "import", weight="true"),
        entry("0 0 6", "import"),
        entry("0 1 7", "import", weight="true"),
        entry("1 0 8", "import", weight="true"),
    )
    assert ask_for(ask, *rows, lineage=True).rows("step rank seq kind") == [
        (0, 0, 3, "parameter"),
        (0, 0, 4, "input"),
        (0, 1, 7, "parameter"),
        (1, 0, 8, "parameter"),
    ]


def test_several_weights_that_one_update_between_steps_spoilt_are_one(ask) -> None:
    places = "0 0 3", "0 0 4", "0 0 5", "0 1 7", "1 0 8"
    rows = (entry(place, "lost", weight="true") for place in places)
    db = ask_for(ask, *rows, lineage=True)
    db.table("weight_updates", UPDATES, *(f"{place} lost between" for place in places))
    assert db.rows("step rank seq kind") == [
        (0, 0, 3, "optimizer"),
        (0, 1, 7, "optimizer"),
        (1, 0, 8, "optimizer"),
    ]


def test_values_lost_otherwise_are_each_an_origin(ask) -> None:
    rows = (entry(f"0 0 {seq}", "lost", weight="true") for seq in (3, 4))
    assert ask_for(ask, *rows, lineage=True).rows("seq kind") == [(3, "gap"), (4, "gap")]


def test_a_weight_that_an_update_spoilt_hides_no_other_origin(ask) -> None:
    rows = (
        entry("0 0 3", "lost", weight="true"),
        entry("0 0 4", "import", weight="true"),
        entry("0 0 5", "birth"),
        entry("0 0 6", "birth"),
        entry("0 0 7", "lost", weight="true"),
    )
    db = ask_for(ask, *rows, lineage=True)
    db.table("weight_updates", UPDATES, "0 0 3 lost between", "0 0 7 lost between")
    assert db.rows("seq kind") == [
        (3, "optimizer"),
        (4, "parameter"),
        (5, "compute"),
        (6, "compute"),
    ]


@pytest.mark.parametrize(
    ("updated", "origins"),
    [
        ((3, 5), [(3, "optimizer"), (4, "gap")]),
        ((4, 5), [(3, "gap"), (4, "optimizer")]),
        ((5,), [(3, "gap"), (4, "gap"), (5, "optimizer")]),
    ],
)
def test_values_lost_otherwise_stand_beside_the_first_of_an_update(
    ask, updated: tuple[int, ...], origins: list
) -> None:
    rows = (entry(f"0 0 {seq}", "lost", weight="true") for seq in (3, 4, 5))
    db = ask_for(ask, *rows, lineage=True)
    db.table("weight_updates", UPDATES, *(f"0 0 {seq} lost between" for seq in updated))
    assert db.rows("seq kind") == origins


def test_nothing_bad_gives_nothing(ask) -> None:
    assert ask("nan/local_origins").rows() == []


@pytest.mark.parametrize(
    ("kind", "damage", "certainty"),
    [
        ("import", "tensors-00000.parquet is missing", "order"),
        ("import", "''", "lineage"),
        ("birth", "calls-00001.parquet is empty", "lineage"),
    ],
)
def test_what_made_an_import_may_be_lost(ask, kind: str, damage: str, certainty: str) -> None:
    db = ask("nan/local_origins").table("entries", ENTRIES, entry("0 0 3", kind))
    db.table("living", PLACES, f"0 0 3 {kind}").table("onsets", PLACES, f"0 0 3 {kind}")
    row = f"0 0 true {damage.replace(' ', '_')}"
    assert db.table("shards", "step rank lineage damage", row).rows("certainty") == [(certainty,)]
