from __future__ import annotations

import pytest


def argument(value: str, kind: str = "float", slot: str = "input.1") -> str:
    """Return the arguments of a call as the readers write them."""
    return f'{{"{slot}":{{"type":"{kind}","value":{value}}}}}'


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
    "dtype",
    "float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 complex64 complex128".split(),
)
def test_is_floating_what_can_hold_nan(call, dtype: str) -> None:
    assert call("is_floating", dtype) is True


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "qint8", "float4_e2m1fn_x2"])
def test_is_floating_not_what_cannot_hold_nan(call, dtype: str) -> None:
    assert call("is_floating", dtype) is False


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


@pytest.mark.parametrize(
    ("backward", "forward"),
    [
        ("Torch.log.0.backward", "Torch.log.0.forward"),
        ("Tensor.backward.0.backward", "Tensor.backward.0.forward"),
        ("Module.mlp.Mlp.backward.0", "Module.mlp.Mlp.forward.0"),
        ("Module.mlp.Mlp.backward.12", "Module.mlp.Mlp.forward.12"),
    ],
)
def test_forward_name_of_a_backward_call(call, backward: str, forward: str) -> None:
    assert call("forward_name", backward) == forward


@pytest.mark.parametrize(
    "name",
    [
        "Torch.log.0.forward",
        "Tensor.backward.0.forward",
        "Module.mlp.Mlp.forward.0",
        "Module.backward.Mlp.forward.0",
        "Torch.log.0.xbackward",
        "",
    ],
)
def test_forward_name_of_any_other_call_is_its_own(call, name: str) -> None:
    assert call("forward_name", name) == name


@pytest.mark.parametrize(
    ("shape", "size"), [([2, 3], 6), ([5], 5), ([], 1), ([0, 3], 0), (None, None)]
)
def test_size_of_a_shape(call, shape: list[int] | None, size: int | None) -> None:
    assert call("size_of", shape) == size


@pytest.mark.parametrize("macro", ["is_floating", "forward_name"])
def test_null_gives_null(call, macro: str) -> None:
    assert call(macro, None) is None
