"""What a call is paired by."""

from __future__ import annotations


def test_names_of_both_frameworks_and_all_spellings_give_one_operation(ask) -> None:
    db = ask("diff/call_keys").table(
        "calls",
        "step rank seq name api phase kind module",
        "0 0 0 Tensor.__add__.0.forward __add__ forward compute -",
        "0 0 1 Functional.layer_norm.0.forward layer_norm forward compute -",
        "0 0 2 Primitive.layer_norm.LayerNorm.0.forward LayerNorm forward compute -",
        "0 0 3 Tensor.__radd__.0.forward __radd__ forward compute -",
        "0 0 4 Cell.module.net._orig_mod.fc.Dense.forward.0 Dense forward module "
        "module.net._orig_mod.fc",
    )
    assert [row[0] for row in db.rows("operation")] == [
        "add", "layernorm", "layernorm", "net.fc", "radd",
    ]  # fmt: skip


def test_a_backward_call_knows_its_forward_call_and_what_comes_late(ask) -> None:
    db = ask("diff/call_keys").table(
        "calls",
        "step rank seq name api phase kind",
        "0 0 0 Functional.gelu.0.forward gelu forward compute",
        "0 0 1 Functional.gelu.0.backward gelu backward compute",
        "0 0 2 Functional.gelu.1.forward gelu forward compute",
        "0 0 3 Gradient.accumulate.0.backward accumulate backward compute",
        "0 0 4 Module.fc.Linear.parameters_grad.0 Linear backward module",
    )
    assert db.rows("seq phase forward_seq late") == [
        (0, "forward", None, False),
        (1, "backward", 0, False),
        (2, "forward", None, True),
        (3, "backward", None, True),
        (4, "gradient", None, True),
    ]


def test_names_that_stand_for_others(ask) -> None:
    db = ask("diff/call_keys").table(
        "calls",
        "step rank seq name api phase kind module",
        "0 0 0 a dense_ext forward compute -",
        "0 0 1 b Dense forward module net.0",
        "0 0 2 c Dense forward module net.1.my_mlp",
    )
    db.table(
        "renamed",
        "kind theirs ours",
        "api dense_ext linear",
        "path net.0 encoder.0",
        "child my_mlp mlp",
    )
    assert [row[0] for row in db.rows("operation")] == ["encoder.0", "linear", "net.1.mlp"]


def test_nothing(ask) -> None:
    assert ask("diff/call_keys").rows() == []
