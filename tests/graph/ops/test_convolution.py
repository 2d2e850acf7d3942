"""Convolution: onnxruntime is the judge of the reference, the reference of the expression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.convolution import Conv, ExactConv, IntegerConv
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]


@pytest.mark.parametrize(
    ("data", "weights", "attributes"),
    [
        ((2, 3, 7, 9), (4, 3, 3, 3), {}),
        ((1, 3, 8, 8), (4, 3, 1, 1), {"strides": [2, 1]}),
        ((1, 4, 9, 7), (6, 2, 3, 2), {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 3]}),
        ((1, 4, 9, 9), (8, 1, 3, 3), {"group": 4, "dilations": [2, 3], "pads": [2, 2, 2, 2]}),
        ((1, 3, 10, 9), (2, 3, 3, 4), {"auto_pad": "SAME_UPPER", "strides": [3, 2]}),
        ((1, 3, 10, 9), (2, 3, 3, 4), {"auto_pad": "SAME_LOWER", "strides": [1, 2]}),
        ((1, 3, 10, 9), (2, 3, 3, 4), {"auto_pad": "VALID", "kernel_shape": [3, 4]}),
        ((2, 3, 11), (4, 3, 5), {"pads": [2, 1]}),
        ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"strides": [1, 2, 1]}),
    ],
)
def test_conv_agrees_with_onnxruntime(
    check_node: Check,
    random_array: Random,
    data: tuple[int, ...],
    weights: tuple[int, ...],
    attributes: dict[str, list[int]],
) -> None:
    inputs = {"x": random_array(1, *data), "w": random_array(2, *weights)}
    check_node("Conv", inputs, constants=("w",), **attributes)
    inputs["b"] = random_array(3, weights[0])
    check_node("Conv", inputs, opset=22, **attributes)


@settings(max_examples=25)
@given(
    groups=st.integers(1, 3),
    channels=st.integers(1, 3),
    outputs=st.integers(1, 3),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
    size=st.tuples(st.integers(5, 8), st.integers(5, 8)),
)
def test_any_conv_agrees_with_a_sum_over_its_taps(
    groups: int,
    channels: int,
    outputs: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
    size: tuple[int, int],
) -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, groups * channels, *size))
    w = generator.standard_normal((groups * outputs, channels, *kernel))
    op = Conv(strides, pads, dilations, groups)
    (y,) = op.reference(x, w)
    padded = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    for n, o, i, j in np.ndindex(*y.shape):
        first = o // outputs * channels
        rows = slice(
            i * strides[0], i * strides[0] + (kernel[0] - 1) * dilations[0] + 1, dilations[0]
        )
        columns = slice(
            j * strides[1], j * strides[1] + (kernel[1] - 1) * dilations[1] + 1, dilations[1]
        )
        expected = (padded[n, first : first + channels, rows, columns] * w[o]).sum()
        assert y[n, o, i, j] == pytest.approx(expected, abs=1e-12)
    (shape,) = op.infer((TensorType("float64", x.shape), TensorType("float64", w.shape)))
    assert shape.shape == y.shape


X = TensorType("float32", (1, 6, 8, 8))
ERRORS = {
    "conv-rank": (Conv(), (X, TensorType("float32", (4, 6, 3)))),
    "conv-channels": (Conv(groups=2), (X, TensorType("float32", (4, 6, 3, 3)))),
    "conv-bias": (Conv(), (X, TensorType("float32", (4, 6, 3, 3)), TensorType("float32", (6,)))),
    "op-arity": (Conv(), (X,)),
    "op-dtypes": (Conv(), (X, TensorType("float64", (4, 6, 3, 3)))),
    "op-number": (Conv(), (TensorType("bool", (1, 2, 3)), TensorType("bool", (1, 2, 3)))),
    "op-spatial-rank": (Conv(), (TensorType("float32", (1, 6)), TensorType("float32", (4, 6)))),
    "window-fit": (Conv(), (X, TensorType("float32", (4, 6, 9, 3)))),
    "window-length": (Conv(strides=(1,)), (X, TensorType("float32", (4, 6, 3, 3)))),
    "window-range": (Conv(strides=(0, 1)), (X, TensorType("float32", (4, 6, 3, 3)))),
}


def test_what_does_not_fit_is_refused(golden: Callable[[str, str], None]) -> None:
    texts = []
    for code, (op, types) in ERRORS.items():
        with pytest.raises(ModelError) as caught:
            op.infer(types)
        assert caught.value.code == code
        texts.append(str(caught.value))
    golden("errors/graph_convolution.txt", "\n\n".join(texts))


def test_a_conv_of_bytes_takes_no_others() -> None:
    types = TensorType("uint8", (1, 2, 4, 4)), TensorType("int32", (3, 2, 1, 1))
    with pytest.raises(ModelError) as caught:
        IntegerConv().infer(types)
    assert str(caught.value) == (
        "ModelError: IntegerConv: expected int8, uint8 or int16, got uint8[1, 2, 4, 4], "
        "int32[3, 2, 1, 1]. [conv-bytes]"
    )


def test_exact_sums_take_bytes_and_floats() -> None:
    types = TensorType("float32", (1, 2, 4, 4)), TensorType("float32", (2, 1, 1, 1))
    with pytest.raises(ModelError) as caught:
        ExactConv(groups=2).infer(types)
    assert str(caught.value) == (
        "ModelError: ExactConv: expected int8 or uint8, and float32, got float32[1, 2, 4, 4], "
        "float32[2, 1, 1, 1]. [conv-exact]"
    )


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_sums_of_bytes_are_exact_in_float32(kind: str) -> None:
    rng = np.random.default_rng(0)
    ends = np.iinfo(kind)
    x = rng.integers(ends.min, ends.max + 1, (2, 3, 9, 8)).astype(kind)
    w = rng.integers(-255, 256, (3, 1, 5, 5)).astype(np.float32)
    op = {"strides": (2, 1), "pads": (2, 2, 1, 0), "groups": 3}
    (found,) = ExactConv(**op, zero=7).reference(x, w)
    padded = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (2, 1), (2, 0)), constant_values=7)
    (wanted,) = Conv(strides=(2, 1), groups=3).reference(padded, w.astype(np.int64))
    np.testing.assert_array_equal(found, wanted)
