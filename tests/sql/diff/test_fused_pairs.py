"""A single call against the sequence that stands for it."""

from __future__ import annotations

CALLS = "step seq operation phase kind"
OUTPUTS = "step seq key shape"


def fused(ask, bench: str, target: str, *pairs: str, shape: str = "[4,8]", **params: bool) -> list:
    """Return the answer for two dumps given as operations; a view makes [4,8], all else `shape`."""
    db = ask("diff/fused_pairs", **{"cross": True, **params})
    db.table("fusions", "fused parts", "linear [matmul]", "linear [matmul,biasadd]",
             "conv2d [conv2d,biasadd]")  # fmt: skip
    for side, text, made in (("bench", bench, "[4,8]"), ("target", target, shape)):
        words = text.split()
        rows = [f"0 {n} {word} forward compute" for n, word in enumerate(words)]
        db.table(f"{side}_calls", CALLS, *rows)
        shapes = ["[4,8]" if word == "reshape" else made for word in words]
        rows = [f"0 {n} output1 {text}" for n, text in enumerate(shapes)]
        db.table(f"{side}_tensors", OUTPUTS, *rows)
    db.table("placed_pairs", "step bench_seq target_seq", *(f"0 {pair}" for pair in pairs))
    return db.rows("bench_seq target_seq side first_seq")


def test_the_last_of_the_sequence_gives_the_result(ask) -> None:
    found = fused(ask, "exp linear tanh", "exp matmul biasadd tanh", "0 0", "2 3")
    assert found == [(1, 2, "target", 1)]
    found = fused(ask, "exp matmul biasadd tanh", "exp linear tanh", "0 0", "3 2")
    assert found == [(2, 1, "bench", 1)]


def test_views_around_it(ask) -> None:
    target = "reshape matmul shape biasadd reshape"
    assert fused(ask, "linear", target, shape="[32]") == [(0, 4, "target", 0)]


def test_several_in_their_order(ask) -> None:
    found = fused(ask, "linear linear", "matmul matmul biasadd")
    assert found == [(0, 0, "target", 0), (1, 2, "target", 1)]


def test_a_convolution_gives_its_partner_up_for_the_sum_with_the_bias(ask) -> None:
    found = fused(ask, "conv2d relu", "conv2d biasadd relu", "0 0", "1 2")
    assert found == [(0, 1, "target", 0)]
    assert fused(ask, "conv2d relu", "conv2d relu", "0 0", "1 1") == []


def test_what_is_no_such_sequence(ask) -> None:
    assert fused(ask, "linear", "matmul biasadd", shape="[4,9]") == []
    assert fused(ask, "linear", "biasadd") == []
    assert fused(ask, "linear exp", "exp matmul", "1 0") == []
    assert fused(ask, "linear", "matmul biasadd", cross=False) == []
    assert fused(ask, "", "") == []


def test_calls_with_partners_are_no_part_of_it(ask) -> None:
    assert fused(ask, "matmul linear", "matmul biasadd", "0 0") == []
