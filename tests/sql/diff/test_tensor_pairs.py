"""How far two tensors are apart, and whether rounding explains it."""

from __future__ import annotations

import pytest

COLUMNS = "step seq slot key direction role dtype shape numel max min mean norm"


def judged(
    ask, bench: str, target: str, *, phase: str = "forward", columns: str = "", **params: bool
):
    """Return kind and ratio of one pair of inputs; sides are dtype, max, min, mean, norm."""
    db = ask("diff/tensor_pairs", **params)
    db.table(
        "call_pairs",
        "step rank bench_seq target_seq api phase kind",
        f"0 0 1 2 mul {phase} compute",
    )
    for side, seq, text in (("bench", 1, bench), ("target", 2, target)):
        dtype, *rest = text.split()
        db.table(
            f"{side}_tensors",
            f"{COLUMNS} {columns}",
            f"0 {seq} input.0 input.0 input value {dtype} [4] 4 {' '.join(rest)}",
        )
    db.table("typical_sizes", "step phase size", "0 forward 1.0", "0 backward 0.001")
    return db.rows("kind ratio judged same_bits")[0]


@pytest.mark.parametrize(
    ("bench", "target", "kind"),
    [
        ("float32 1 -1 0 2", "float32 1 -1 0 2", None),
        ("float32 1 -1 0 2", "float32 1.000001 -1 0 2", None),  # 8 epsilon: other order of a sum
        ("float32 1 -1 0 2", "float32 1.0002 -1 0 2", "value"),  # 1,678 epsilon
        ("float32 1 -1 1e-9 2", "float32 1 -1 -3e-9 2", None),  # a mean is a cancellation
        ("float32 0 0 0 0", "float32 0 0 0 0", None),
        ("float32 0 0 0 0", "float32 1e-30 0 0 1e-30", None),
        ("float32 0 0 0 0", "float32 1e-3 0 1e-4 1e-3", "value"),
        ("bfloat16 1 -1 0 2", "bfloat16 1.006 -1 0 2", None),
        ("bfloat16 1 -1 0 2", "bfloat16 1.01 -1.01 0 2.02", "value"),
        ("float16 1 -1 0 2", "float16 1.001 -1 0 2", None),
        ("float16 1 -1 0 2", "float16 1.01 -1 0 2", "value"),
        ("int64 7 0 3 9", "int64 7 0 3 9", None),
        ("int64 7 0 3 9", "int64 8 0 3 9", "value"),
        ("float32 1 -1 0 2", "bfloat16 1.002 -1 0 2", "dtype"),
        ("float32 1 -1 0 2", "bfloat16 1.5 -1 0 2", "dtype"),
    ],
)
def test_values(ask, bench: str, target: str, kind: str | None) -> None:
    assert judged(ask, bench, target)[0] == kind
    assert judged(ask, target, bench)[0] == kind


def test_a_gradient_that_should_be_zero_is_noise(ask) -> None:
    bench, target = "float32 2e-10 -2e-10 0 3e-10", "float32 -1e-10 -3e-10 0 4e-10"
    assert judged(ask, bench, target, phase="backward")[0] is None
    assert (
        judged(ask, "float32 2e-6 0 0 3e-6", "float32 1e-6 0 0 2e-6", phase="backward")[0]
        == "value"
    )


@pytest.mark.parametrize(("bench", "target", "kind"), [("a", "a", None), ("a", "b", "value")])
def test_checksums_decide_where_they_are_all_there_is(ask, bench, target, kind) -> None:
    rows = [f"float32 - - - - {text}" for text in (bench, target)]
    assert judged(ask, *rows, columns="checksum")[::2] == (kind, True)


def test_other_bits_of_equal_values(ask) -> None:
    """-0.0 and 0.0: the hash differs, the value does not."""
    rows = [f"float32 0.0 0.0 0.0 0.0 {text}" for text in "ab"]
    assert judged(ask, *rows, columns="checksum") == (None, 0.0, True, False)
    assert judged(ask, *rows, columns="checksum", strict=True)[0] == "value"


def test_strict_wants_every_bit(ask) -> None:
    assert judged(ask, "float32 1 -1 0 2", "float32 1.0000001 -1 0 2", strict=True)[0] == "value"
    assert judged(ask, "float32 1 -1 0 2", "float32 1 -1 0 2", strict=True)[0] is None


def test_nan(ask) -> None:
    columns = "has_nan has_posinf has_neginf"
    same = judged(ask, *["float32 1 0 0 2 true - -"] * 2, columns=columns)
    assert same[::2] == (None, True)
    other = judged(ask, "float32 1 0 0 2 true - -", "float32 1 0 0 2 false - -", columns=columns)
    assert other[0] == "nonfinite"
    unknown = judged(ask, "float32 1 0 0 2 - - -", "float32 1 0 0 2 false - -", columns=columns)
    assert unknown[0] is None


def test_nothing_on_record_is_not_judged(ask) -> None:
    assert judged(ask, "float32 - - - -", "float32 - - - -")[2] is False


def test_noise_of_the_benchmark_itself(ask) -> None:
    db = ask("diff/tensor_pairs")
    db.table(
        "call_pairs", "step rank bench_seq target_seq api phase kind", "0 0 1 2 mul forward compute"
    )
    row = "input.0 input.0 input value float32 [4] 4"
    db.table("bench_tensors", COLUMNS, f"0 1 {row} 1 -1 0 2")
    db.table("target_tensors", COLUMNS, f"0 2 {row} 1.001 -1 0 2.001")
    noise = "step bench_seq slot max_error mean_error norm_error"
    db.table("noise", noise, "0 1 input.0 0.002 0.1 0.002")
    assert db.rows("kind") == [(None,)]


def test_float32_behind_bfloat16_is_no_more_exact_than_it(ask) -> None:
    db = ask("diff/tensor_pairs")
    db.table(
        "call_pairs", "step rank bench_seq target_seq api phase kind",
        "0 0 1 1 linear forward compute", "0 0 2 2 float forward compute",
    )  # fmt: skip
    rows = "0 {0} output.0 output.0 output value {1} [4] 4 {2} -1 0 2"
    for side, value in (("bench", 1), ("target", 1.003)):
        db.table(
            f"{side}_tensors",
            COLUMNS,
            rows.format(1, "bfloat16", value),
            rows.format(2, "float32", value),
        )
    assert db.rows("kind") == [(None,), (None,)]


def test_reserved_memory_is_not_judged(ask) -> None:
    db = ask("diff/tensor_pairs")
    db.table(
        "call_pairs",
        "step rank bench_seq target_seq api phase kind",
        "0 0 1 1 empty forward compute",
    )
    for side, value in (("bench", 1), ("target", 5)):
        row = f"0 1 output.0 output.0 output value float32 [4] 4 {value} -1 0 2"
        db.table(f"{side}_tensors", COLUMNS, row)
    assert db.rows("kind judged") == [(None, False)]


def test_a_shard_is_not_held_against_the_whole(ask) -> None:
    for split, kind in ((True, None), (False, "shape")):
        db = ask("diff/tensor_pairs", split=split)
        db.table(
            "call_pairs",
            "step rank bench_seq target_seq api phase kind",
            "0 0 1 1 mul forward compute",
        )
        row = "0 1 input.0 input.0 input value float32"
        db.table("bench_tensors", COLUMNS, f"{row} [8] 8 8 1 4.5 14")
        db.table("target_tensors", COLUMNS, f"{row} [4] 4 4 1 2.5 5")
        assert db.rows("kind") == [(kind,)]


def agreement(
    ask, bench: str, target: str, *, shapes: str = "[4] 4 [4] 4", more: str = ""
) -> tuple:
    """Return kind, agreement and max_rel of two float32 inputs; `more` columns beside them."""
    sizes = shapes.split()
    db = ask("diff/tensor_pairs")
    pair = "0 0 1 2 mul forward compute"
    db.table("call_pairs", "step rank bench_seq target_seq api phase kind", pair)
    for side, seq, text, size in (
        ("bench", 1, bench, sizes[:2]),
        ("target", 2, target, sizes[2:]),
    ):
        row = f"0 {seq} input.0 input.0 input value float32 {' '.join(size)} {text}"
        db.table(f"{side}_tensors", f"{COLUMNS} {more}", row)
    return db.rows("kind agreement max_rel")[0]


@pytest.mark.parametrize(
    ("bench", "target", "found"),
    [
        ("0 0 0 0 - -", "0 0 0 0 - -", "statistics"),
        ("0 0 0 0 a -", "0 0 0 0 a -", "bits"),
        ("0 0 0 0 a -", "0 0 0 0 b -", "other_bits"),
        ("1 0 0 1 - true", "1 0 0 1 - true", "nonfinite"),
        ("1 0 0 1 a true", "1 0 0 1 b true", "other_bits"),
        ("0 0 0 0 - -", "1e-30 0 0 1e-30 - -", "noise"),
        ("1 0 0 1 - -", "1.000001 0 0 1 - -", "rounding"),
        ("1 0 0 1 a true", "1.000001 0 0 1 b true", "rounding"),
        ("1 0 0 1 - -", "2 0 0 1 - -", None),
    ],
)
def test_how_two_tensors_agree(ask, bench: str, target: str, found: str | None) -> None:
    assert agreement(ask, bench, target, more="checksum has_nan")[1] == found


def test_below_the_floor_there_is_no_relative_error(ask) -> None:
    """Else 1e-30 against 0 would top every list."""
    assert agreement(ask, "0 0 0 0", "1e-30 0 0 1e-30")[2] == 0
    assert agreement(ask, "0 0 0 0", "1e-3 0 0 1e-3")[2] == 1


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("2 -1 0.2 3", None),  # two zeros more
        ("2 -1 0.25 3", "shape"),  # another sum
        ("2 -1 0.2 3.1", "shape"),
        ("2 -2 0.2 3", "shape"),
        ("2 -1 - -", "shape"),
    ],
)
def test_zeros_that_one_side_has_more_of_are_padding(ask, target: str, kind: str | None) -> None:
    bench, shapes = "2 -1 0.25 3", "[2,4] 8 [2,5] 10"
    found = agreement(ask, bench, target, shapes=shapes)
    assert found[:2] == (kind, None if kind else "padding")
    assert agreement(ask, bench, target, shapes="[2,4] 8 [5,2] 10")[0] == "shape"


def test_a_negative_tensor_with_zeros_more(ask) -> None:
    found = agreement(ask, "-1 -2 -1.5 3", "0 -2 -1.2 3", shapes="[2,4] 8 [2,5] 10")
    assert found[:2] == (None, "padding")


def test_elements_that_both_have_decide_on_padding(ask) -> None:
    for off, kind in ((0.0, None), (0.1, "shape")):
        db = ask("diff/tensor_pairs")
        pair = "0 0 1 2 mul forward compute"
        db.table("call_pairs", "step rank bench_seq target_seq api phase kind", pair)
        rows = "0 {} input.0 input.0 input value float32 {} {} -1 0 3"
        db.table("bench_tensors", COLUMNS, rows.format(1, "[2,4] 8", 2))
        db.table("target_tensors", COLUMNS, rows.format(2, "[2,5] 10", 9))
        errors = "step bench_seq target_seq slot max_abs scale"
        db.table("real_errors", errors, f"0 1 2 input.0 {off} 2")
        assert db.rows("kind") == [(kind,)]


@pytest.mark.parametrize(
    ("bench", "target", "split", "part"),
    [
        ("- -", "- -", True, False),
        ("S0/2 2", "S0/2 2", False, False),
        ("S0/2 2", "S0/2 2", True, True),
        ("S0/2 2", "S1/2 2", False, True),
        ("- -", "S1/2 2", False, True),
    ],
)
def test_what_is_held_in_parts(ask, bench: str, target: str, split: bool, part: bool) -> None:
    db = ask("diff/tensor_pairs", split=split)
    pair = "0 0 1 2 mul forward compute"
    db.table("call_pairs", "step rank bench_seq target_seq api phase kind", pair)
    for side, seq, text in (("bench", 1, bench), ("target", 2, target)):
        row = f"0 {seq} input.0 input.0 input value float32 [4] 4 1 -1 0 2 {text}"
        db.table(f"{side}_tensors", f"{COLUMNS} sharding shards", row)
    assert db.rows("part judged") == [(part, not part)]


def test_of_replicas_only_weights_are_judged(ask) -> None:
    db = ask("diff/tensor_pairs", replicas=True)
    pair = "0 0 1 2 linear forward compute"
    db.table("call_pairs", "step rank bench_seq target_seq api phase kind", pair)
    for side, seq in (("bench", 1), ("target", 2)):
        row = "0 {} input.{} input.{} input value float32 [4] 4 {} -1 0 2"
        db.table(f"{side}_tensors", COLUMNS, *(row.format(seq, n, n, seq) for n in (0, 1)))
    assert db.rows("slot judged kind") == [("input.0", False, None), ("input.1", True, "value")]


def test_of_a_sequence_only_the_result_is_judged(ask) -> None:
    for phase, judged in (("forward", "output.0"), ("backward", "input.0")):
        db = ask("diff/tensor_pairs")
        pair = f"0 0 1 2 fused linear {phase} compute"
        db.table("call_pairs", "step rank bench_seq target_seq how api phase kind", pair)
        for side, seq in (("bench", 1), ("target", 2)):
            row = "0 {0} {1}.0 {1}.0 {1} value float32 [4] 4 1 -1 0 2"
            rows = [row.format(seq, way) for way in ("input", "output")]
            db.table(f"{side}_tensors", COLUMNS, *rows)
        assert db.rows("slot judged") == [("input.0", judged == "input.0"),
                                          ("output.0", judged == "output.0")]  # fmt: skip
