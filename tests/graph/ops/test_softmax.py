"""Softmax with the meaning of old and of new opsets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("opset", [7, 11, 13])
def test_softmax_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, axis: int | None, opset: int
) -> None:
    if opset == 7 and axis == -1:
        return  # negative axes came with opset 11
    attributes = {} if axis is None else {"axis": axis}
    check_node("Softmax", {"x": random_array(1, 2, 3, 4) * 4}, opset=opset, **attributes)


def test_the_shift_keeps_large_numbers_finite() -> None:
    (y,) = Softmax((1,)).reference(np.array([[1000.0, 1000.0, -1000.0]]))
    np.testing.assert_array_equal(y, [[0.5, 0.5, 0.0]])


def test_axes_must_exist_and_ascend() -> None:
    for axes in ((), (2, 1), (3,), (1, 1)):
        with pytest.raises(ModelError) as caught:
            Softmax(axes).infer((TensorType("float32", (2, 3, 4)),))
        problem = f"axes {axes} are not ascending axes of float32[2, 3, 4]."
        assert str(caught.value) == f"ModelError: Softmax: {problem} [op-axes]"


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("opset", [7, 11, 13])
def test_the_logarithm_of_softmax_agrees_with_onnxruntime(
    check_node: Check, random_array: Random, axis: int | None, opset: int
) -> None:
    if opset == 7 and axis == -1:
        return  # negative axes came with opset 11
    attributes = {} if axis is None else {"axis": axis}
    check_node("LogSoftmax", {"x": random_array(1, 2, 3, 4) * 40}, opset=opset, **attributes)
