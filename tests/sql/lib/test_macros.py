from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from pipeline.sqlfile import load

MACROS = (
    "allocates",
    "dtype_limit",
    "hands_to_all",
    "ignores_values",
    "is_floating",
    "is_weight_slot",
    "limit_argument",
    "nonfinite_argument",
    "words_for",
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        for name in MACROS:
            con.execute(load(f"lib/{name}").text)
        yield con


@pytest.fixture
def call(connection) -> Any:
    """Return what a macro gives: call("dtype_limit", "float16")."""

    def call(macro: str, *values: Any) -> Any:
        marks = ", ".join("?" for _ in values)
        return connection.execute(f"SELECT {macro}({marks})", list(values)).fetchone()[0]

    return call


def argument(value: str, kind: str = "float", slot: str = "input.1") -> str:
    """Return the arguments of a call as the readers write them."""
    return f'{{"{slot}":{{"type":"{kind}","value":{value}}}}}'


@pytest.mark.parametrize(
    "api",
    "empty empty_like empty_strided empty_permuted empty_with_format empty_quantized new_empty "
    "new_empty_strided".split(),
)
def test_allocates_what_only_reserves_memory(call, api: str) -> None:
    assert call("allocates", api) is True


@pytest.mark.parametrize("api", ["zeros", "empty_cache", "new_zeros", "full", "Empty", ""])
def test_allocates_not_what_writes_its_result(call, api: str) -> None:
    assert call("allocates", api) is False


@pytest.mark.parametrize(
    ("dtype", "limit"),
    [
        ("float16", 65504.0),
        ("bfloat16", (2 - 2**-7) * 2.0**127),
        ("float32", (2 - 2**-23) * 2.0**127),
        ("float64", (2 - 2**-52) * 2.0**1023),
        ("float8_e4m3fn", 448.0),
        ("float8_e5m2", 57344.0),
    ],
)
def test_dtype_limit_is_the_largest_finite_value(call, dtype: str, limit: float) -> None:
    assert call("dtype_limit", dtype) == limit


@pytest.mark.parametrize("dtype", ["int32", "bool", "float", "float16x2", "", None])
def test_dtype_limit_of_a_dtype_without_one_or_unknown_is_null(call, dtype: str | None) -> None:
    assert call("dtype_limit", dtype) is None


@pytest.mark.parametrize(
    ("api", "reduce_op"),
    [
        ("broadcast", None),
        ("all_gather", None),
        ("all_gather_into_tensor", None),
        ("_all_gather_base", None),
        ("all_reduce", "SUM"),
        ("all_reduce", "AVG"),
        ("all_reduce", "PREMUL_SUM"),
        ("all_reduce", None),
        pytest.param(
            "all_reduce",
            "PRODUCT",
            marks=pytest.mark.xfail(strict=True, reason="NaN times anything is NaN for all"),
        ),
    ],
)
def test_hands_to_all_what_any_member_brings(call, api: str, reduce_op: str | None) -> None:
    assert call("hands_to_all", api, reduce_op) is True


@pytest.mark.parametrize(
    ("api", "reduce_op"),
    [
        ("all_reduce", "MAX"),
        ("all_reduce", "MIN"),
        ("reduce", "SUM"),
        ("reduce_scatter_tensor", "SUM"),
        ("gather", None),
        ("scatter", None),
        ("all_to_all", None),
        ("all_to_all_single", None),
        ("send", None),
    ],
)
def test_hands_not_to_all_what_goes_to_some_or_may_be_dropped(
    call, api: str, reduce_op: str | None
) -> None:
    assert call("hands_to_all", api, reduce_op) is False


@pytest.mark.parametrize(
    "api",
    "zeros_like ones_like full_like rand_like randn_like randint_like empty_like new_zeros "
    "new_ones new_full new_empty new_empty_strided new_tensor zero_ fill_ copy_ normal_ uniform_ "
    "random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_ eye_ set_ size numel dim "
    "data_ptr".split(),
)
def test_ignores_values_what_takes_the_shape_or_overwrites(call, api: str) -> None:
    assert call("ignores_values", api) is True


@pytest.mark.parametrize(
    "api",
    [
        "masked_fill_",
        "add_",
        "bernoulli",
        "clone",
        "fill_diagonal_",
        "to",
        pytest.param(
            "type",
            marks=pytest.mark.xfail(
                strict=True, reason="x.type(dtype) casts: it reads x and carries on what x holds"
            ),
        ),
        pytest.param(
            "resize_",
            marks=pytest.mark.xfail(strict=True, reason="x.resize_() keeps the elements of x"),
        ),
    ],
)
def test_ignores_not_the_values_that_the_result_is_made_of(call, api: str) -> None:
    assert call("ignores_values", api) is False


@pytest.mark.parametrize(
    "dtype",
    "float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 complex64 complex128".split(),
)
def test_is_floating_what_can_hold_nan(call, dtype: str) -> None:
    assert call("is_floating", dtype) is True


@pytest.mark.parametrize(
    "dtype",
    [
        "int64",
        "uint8",
        "bool",
        "qint8",
        pytest.param(
            "float4_e2m1fn_x2",
            marks=pytest.mark.xfail(
                strict=True, reason="the 4-bit format has neither NaN nor infinities"
            ),
        ),
    ],
)
def test_is_floating_not_what_cannot_hold_nan(call, dtype: str) -> None:
    assert call("is_floating", dtype) is False


@pytest.mark.parametrize(
    ("api", "slots"),
    [
        ("linear", "1 2"),
        ("dense", "1 2"),
        ("npu_linear", "1 2"),
        ("npu_conv2d", "1 2"),
        ("conv1d", "1 2"),
        ("conv2d", "1 2"),
        ("conv3d", "1 2"),
        ("conv_transpose1d", "1 2"),
        ("conv_transpose2d", "1 2"),
        ("conv_transpose3d", "1 2"),
        ("embedding", "1"),
        ("embedding_bag", "1"),
        ("prelu", "1"),
        ("npu_rms_norm", "1"),
        ("BiasAdd", "1"),
        ("bias_add", "1"),
        ("layer_norm", "2 3"),
        ("group_norm", "2 3"),
        ("rms_norm", "2"),
        ("LayerNorm", "1 2"),
        ("batch_norm", "1 2 3 4"),
        ("instance_norm", "1 2 3 4"),
        ("BatchNorm", "1 2 3 4"),
        pytest.param(
            "bilinear",
            "2 3",
            marks=pytest.mark.xfail(
                strict=True, reason="bilinear(input1, input2, weight, bias): input.3 is the bias"
            ),
        ),
    ],
)
def test_is_weight_slot_by_position(call, api: str, slots: str) -> None:
    for slot in slots.split():
        assert call("is_weight_slot", api, f"input.{slot}") is True


@pytest.mark.parametrize("keyword", "weight bias running_mean running_var gamma beta".split())
def test_is_weight_slot_by_keyword_of_any_operation(call, keyword: str) -> None:
    assert call("is_weight_slot", "some_fused_norm", f"input.{keyword}") is True
    assert call("is_weight_slot", None, f"input.{keyword}") is True


@pytest.mark.parametrize("keyword", "in_proj_weight in_proj_bias out_proj_weight".split())
def test_is_weight_slot_by_keyword_of_attention(call, keyword: str) -> None:
    assert call("is_weight_slot", "multi_head_attention_forward", f"input.{keyword}") is True


@pytest.mark.parametrize(
    ("api", "slot"),
    [
        ("linear", "input.0"),
        ("linear", "input.3"),
        ("linear", "output.1"),
        ("linear", "output.weight"),
        ("embedding", "input.2"),
        ("batch_norm", "input.5"),
        ("add", "input.1"),
        ("matmul", "input.1"),
        ("cross_entropy", "input.input"),
        (None, "input.1"),
        pytest.param(
            "bilinear",
            "input.1",
            marks=pytest.mark.xfail(
                strict=True, reason="bilinear(input1, input2, weight, bias): input.1 is data"
            ),
        ),
    ],
)
def test_is_weight_slot_not_what_holds_data(call, api: str | None, slot: str) -> None:
    assert call("is_weight_slot", api, slot) is False


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        ("-65504.0", 65504.0),
        ("65504", 65504.0),
        ("-1e+30", 65504.0),
        ("-3.4028234663852886e+38", 3.4028234663852886e38),
        ("3.4028234663852886E38", 3.4028234663852886e38),
    ],
)
def test_limit_argument_at_the_limit_or_beyond(call, value: str, limit: float) -> None:
    assert call("limit_argument", argument(value), limit) is True


def test_limit_argument_is_any_of_the_arguments(call) -> None:
    args = '{"input.1": {"type": "int", "value": 2}, "input.2": {"type": "float", "value": -7e4}}'
    assert call("limit_argument", args, 65504.0) is True


@pytest.mark.parametrize(
    ("args", "limit"),
    [
        (argument("-65503.0"), 65504.0),
        (argument("-1e+30"), 3.4028234663852886e38),
        (argument('"65504"', kind="str"), 65504.0),
        (argument("true", kind="bool"), 1.0),
        ("{}", 65504.0),
        (argument("-1e+30"), None),
        (None, 65504.0),
    ],
)
def test_limit_argument_not_below_the_limit_or_when_unknown(
    call, args: str | None, limit: float | None
) -> None:
    assert call("limit_argument", args, limit) is False


@pytest.mark.parametrize("word", ["inf", "-inf", "+inf", "nan"])
def test_nonfinite_argument_spelled_out_beside_its_type(call, word: str) -> None:
    assert call("nonfinite_argument", argument(f'"{word}"')) is True
    assert call("nonfinite_argument", f'{{"input.1": {{"type": "float", "value": "{word}"}}}}')


def test_nonfinite_argument_is_any_of_the_arguments(call) -> None:
    args = '{"input.1":{"type":"float","value":0.5},"input.fill":{"type":"float","value":"-inf"}}'
    assert call("nonfinite_argument", args) is True


@pytest.mark.parametrize(
    "args",
    [
        argument("3.0"),
        argument("-3.4e+38"),
        argument('"inf"', kind="str"),
        argument('"infinite"'),
        '{"input.inf":{"type":"float","value":1.0}}',
        "{}",
        None,
    ],
)
def test_nonfinite_argument_not_a_finite_number_or_a_text(call, args: str | None) -> None:
    assert call("nonfinite_argument", args) is False


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ((True, True, True), ["nan", "inf", "-inf"]),
        ((False, True, False), ["inf"]),
        ((False, False, True), ["-inf"]),
        ((True, None, None), ["nan"]),
        ((False, False, False), []),
        ((None, None, None), []),
    ],
)
def test_words_for_what_is_known_to_be_there(call, found: tuple, words: list[str]) -> None:
    assert call("words_for", *found) == words


@pytest.mark.parametrize("macro", ["allocates", "ignores_values", "is_floating"])
def test_null_gives_null(call, macro: str) -> None:
    assert call(macro, None) is None


def test_hands_to_all_of_an_operation_that_is_not_recorded_is_null(call) -> None:
    assert call("hands_to_all", None, None) is None
