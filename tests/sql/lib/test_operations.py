from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "api",
    "empty empty_like empty_strided empty_permuted empty_with_format empty_quantized new_empty "
    "new_empty_strided".split(),
)
def test_allocates_what_only_reserves_memory(call, api: str) -> None:
    assert call("allocates", api) is True


@pytest.mark.parametrize(
    "api", ["zeros", "empty_cache", "new_zeros", "full", "resize_", "Empty", ""]
)
def test_allocates_not_what_writes_its_result(call, api: str) -> None:
    assert call("allocates", api) is False


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
        ("all_reduce", "PRODUCT"),
        ("all_reduce", "PROD"),
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
    "random_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_ eye_ set_ size numel "
    "dim".split(),
)
def test_ignores_values_what_takes_the_shape_or_overwrites(call, api: str) -> None:
    assert call("ignores_values", api) is True


@pytest.mark.parametrize(
    "api", "masked_fill_ add_ bernoulli clone fill_diagonal_ to type resize_".split()
)
def test_ignores_not_the_values_that_the_result_is_made_of(call, api: str) -> None:
    assert call("ignores_values", api) is False


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
        ("bilinear", "2 3"),
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
        ("bilinear", "input.1"),
    ],
)
def test_is_weight_slot_not_what_holds_data(call, api: str | None, slot: str) -> None:
    assert call("is_weight_slot", api, slot) is False


def test_hands_to_all_of_an_operation_that_is_not_recorded_is_null(call) -> None:
    assert call("hands_to_all", None, None) is None


@pytest.mark.parametrize("macro", ["allocates", "ignores_values"])
def test_null_gives_null(call, macro: str) -> None:
    assert call(macro, None) is None
