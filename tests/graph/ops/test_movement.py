"""Identity, Reshape, Transpose and Concat, and the ONNX operators that become them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.movement import Concat, Reshape, Transpose, reshape_groups
from tilewright.graph.types import Array, TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import size_of

Check = Callable[..., object]
Random = Callable[..., Array]


@pytest.mark.parametrize("shape", [[6, 4], [0, -1], [-1], [2, 3, 4, 1], [4, 0, 2]])
def test_reshape_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, shape: list[int]
) -> None:
    x = random_array(1, 2, 3, 4)
    check_node("Reshape", {"x": x, "shape": np.array(shape)}, constants=("shape",), opset=7)


def test_reshape_with_allowzero_takes_zero_for_zero(
    node_model: Callable[..., onnx.ModelProto], run_onnxruntime: Callable[..., list[Array]]
) -> None:
    x = np.zeros((0, 3), dtype=np.float32)
    inputs = {"x": x, "shape": np.array([3, 0])}
    model = node_model("Reshape", inputs, constants=("shape",), allowzero=1)
    assert run_onnxruntime(model, inputs)[0].shape == (3, 0)
    assert import_onnx(model).types["y"].shape == (3, 0)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, axis: int
) -> None:
    check_node("Flatten", {"x": random_array(1, 2, 3, 4)}, axis=axis, opset=11)


def test_squeeze_and_unsqueeze_take_axes_from_attribute_or_input(
    check_node: Check, random_array: Random
) -> None:
    x, axes = random_array(1, 1, 3, 1, 4), np.array([0, -2])
    check_node("Squeeze", {"x": x}, opset=11)
    check_node("Squeeze", {"x": x}, opset=11, axes=[0, 2])
    check_node("Squeeze", {"x": x, "axes": axes}, opset=13, constants=("axes",))
    check_node("Unsqueeze", {"x": x}, opset=9, axes=[1, 3])
    check_node("Unsqueeze", {"x": x, "axes": axes}, opset=13, constants=("axes",))


@pytest.mark.parametrize("perm", [None, [0, 2, 1, 3], [3, 0, 1, 2]])
def test_transpose_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, perm: list[int] | None
) -> None:
    check_node(
        "Transpose", {"x": random_array(1, 2, 3, 4, 5)}, **({} if perm is None else {"perm": perm})
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_agrees_with_onnxruntime(check_node: Check, random_array: Random, axis: int) -> None:
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    shapes[1][axis] = 1
    shapes[2][axis] = 5
    inputs = {f"x{n}": random_array(n, *shape) for n, shape in enumerate(shapes)}
    check_node("Concat", inputs, axis=axis, opset=11)
    check_node("Concat", {"x": inputs["x0"]}, axis=axis, opset=7)


def test_dropout_and_identity_pass_their_input_on(check_node: Check, random_array: Random) -> None:
    x = random_array(1, 2, 3)
    check_node("Identity", {"x": x}, opset=7)
    check_node("Dropout", {"x": x}, opset=7, ratio=0.25)
    ratio, training = np.float32(0.5).reshape(()), np.array(False)
    inputs = {"x": x, "ratio": ratio, "training": training}
    check_node("Dropout", inputs, opset=13, constants=("ratio", "training"), seed=3)


@given(st.lists(st.integers(1, 4), max_size=5))
def test_groups_of_a_reshape_hold_the_same_elements(before: list[int]) -> None:
    after = [factor for size in before for factor in ([2, 2] if size == 4 else [size, 1])]
    groups = reshape_groups(tuple(before), tuple(after))
    assert [axis for group, _ in groups for axis in group] == list(range(len(before)))
    assert [axis for _, group in groups for axis in group] == list(range(len(after)))
    for old, new in groups:
        assert math.prod(before[axis] for axis in old) == math.prod(after[axis] for axis in new)


def test_groups_are_as_small_as_they_can_be() -> None:
    assert reshape_groups((2, 12, 5), (2, 3, 4, 5)) == (((0,), (0,)), ((1,), (1, 2)), ((2,), (3,)))
    assert reshape_groups((6, 4), (4, 6)) == (((0, 1), (0, 1)),)
    assert reshape_groups((2, 1), (2,)) == (((0,), (0,)), ((1,), ()))


def test_a_size_that_may_be_0_is_a_factor_as_any_other() -> None:
    batch, left = size_of(Dim("batch", low=1, high=8)), size_of(Dim("left", high=1))
    apart, joined = (left, batch, 40), (left * batch, 40)
    assert reshape_groups(apart, joined) == (((0, 1), (0,)), ((2,), (1,)))
    assert reshape_groups(joined, apart) == (((0,), (0, 1)), ((1,), (2,)))


F = "float32"
REFUSALS: list[tuple[Operator, tuple[TensorType, ...], str]] = [
    (
        Reshape((2, 5)),
        (TensorType(F, (3, 4)),),
        "Reshape: float32[3, 4] has 12 elements, shape [2, 5] has 10. [reshape-count]",
    ),
    (
        Transpose((0, 0)),
        (TensorType(F, (3, 4)),),
        "Transpose: (0, 0) is not a permutation of the axes of float32[3, 4]. "
        "[transpose-permutation]",
    ),
    (
        Concat(1),
        (TensorType(F, (3, 4)), TensorType(F, (2, 4))),
        "Concat: inputs must agree on every axis but 1, got float32[3, 4], float32[2, 4]. "
        "[concat-shape]",
    ),
    (Concat(2), (TensorType(F, (3, 4)),), "Concat: axis 2 lies outside -2 .. 1. [op-axis]"),
]


@pytest.mark.parametrize(("op", "types", "text"), REFUSALS)
def test_what_does_not_fit_is_refused(
    op: Operator, types: tuple[TensorType, ...], text: str
) -> None:
    with pytest.raises(ModelError) as caught:
        op.infer(types)
    assert str(caught.value) == f"ModelError: {text}"
