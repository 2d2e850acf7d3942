"""Add, Mul, Sum and Relu, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.elementwise import Add, Mul, Relu
from tilewright.graph.types import Array, TensorType

Check = Callable[..., object]
Random = Callable[..., Array]

SHAPES = [
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((3, 1, 1), (2, 3, 4, 5)),
    ((2, 1, 4), (3, 1)),
    ((), (3, 2)),
]


@pytest.mark.parametrize("operator", ["Add", "Mul"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("opset", [7, 17])
def test_two_operands_broadcast_as_in_onnxruntime(
    check_node: Check,
    random_array: Random,
    operator: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    opset: int,
) -> None:
    check_node(operator, {"a": random_array(1, *a), "b": random_array(2, *b)}, opset=opset)
    check_node(operator, {"a": random_array(1, *a), "b": random_array(2, *b)}, constants=("b",))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_sum_adds_any_number_of_operands(
    check_node: Check, random_array: Random, count: int
) -> None:
    shapes = [(2, 3, 4), (3, 1), (1, 1, 4), (2, 3, 4)]
    check_node("Sum", {f"x{n}": random_array(n, *shapes[n]) for n in range(count)}, opset=8)


def test_relu_agrees_with_onnxruntime_and_keeps_integers(
    check_node: Check, random_array: Random
) -> None:
    check_node("Relu", {"x": random_array(1, 3, 4)}, opset=7)
    (y,) = Relu().reference(np.array([-3, 0, 4], dtype=np.int32))
    assert y.dtype == np.int32
    assert y.tolist() == [0, 0, 4]


def test_sizes_of_zero_stay_zero() -> None:
    types = (TensorType("float32", (0, 3)), TensorType("float32", (1, 3)))
    assert Add().infer(types)[0].shape == (0, 3)


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ModelError) as caught:
        Add().infer((TensorType("float32", (2, 3)), TensorType("float32", (4, 3))))
    assert str(caught.value) == (
        "ModelError: Add: shapes do not broadcast: axis -2 has sizes [2, 4] in float32[2, 3], "
        "float32[4, 3]. "
        "[op-broadcast]"
    )
    with pytest.raises(ModelError) as caught:
        Mul().infer((TensorType("bool", (2,)), TensorType("bool", (2,))))
    assert str(caught.value) == "ModelError: Mul: expected numbers, got bool. [op-number]"
