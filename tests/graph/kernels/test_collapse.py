"""Fewer axes, the same numbers: every collapsed kernel is evaluated beside the original on the same
memory.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.kernels.collapse import as_matrix_product, collapsed
from tilewright.graph.kernels.express import express
from tilewright.graph.kernels.fused_kernel import FusedKernel, fused_kernel_of
from tilewright.graph.kernels.groups import FusionGroup
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul, Sum
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.movement import Concat, Transpose
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.ops.reduction import ReduceSum
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.types import TensorType
from tilewright.tir.reference.evaluate import evaluate

Shape = tuple[int, ...]


def fused(
    op: Operator, *shapes: Shape, rest: tuple[tuple[Operator, Shape | None], ...] = ()
) -> FusedKernel:
    """`op` of tensors of `shapes`, then operators of one more operand of the given shape, or of
    none.
    """
    builder = GraphBuilder("g")

    def tensor(shape: Shape) -> str:
        return builder.input(builder.fresh("x"), TensorType("float32", shape))

    value = builder.add(op, *map(tensor, shapes))
    for step, shape in rest:
        value = builder.add(step, value, *(() if shape is None else (tensor(shape),)))
    graph = builder.finish((value,))
    return fused_kernel_of(graph, FusionGroup(graph.nodes))[0]


def result(what: FusedKernel, seed: int = 0) -> np.ndarray:
    """The flat result on random numbers that depend on the operands' sizes alone."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(o.type.elements).astype("float32") for o in what.operands]
    shaped = [a.reshape(o.type.shape) for a, o in zip(arrays, what.operands, strict=True)]
    (y,) = evaluate(express(what), shaped).values()
    return y.reshape(-1)


def shapes(what: FusedKernel) -> list[Shape]:
    return [operand.type.shape for operand in what.operands]


def test_operators_before_a_softmax_keep_its_axes() -> None:
    before = fused(Relu(), (2, 3, 4, 5), rest=((Add(), (5,)), (Softmax((3,)), None)))
    assert collapsed(before) is before


CASES = [
    # equal shapes: one axis
    (fused(Add(), (1, 4, 5, 6), (1, 4, 5, 6)), [(120,), (120,)]),
    # a bias along the last axis: rows and columns
    (fused(Add(), (1, 4, 5, 6), (6,)), [(20, 6), (6,)]),
    (fused(Mul(), (1, 4, 5, 6), (1, 1, 1, 6), rest=((Relu(), None),)), [(20, 6), (6,)]),
    # a factor along the first axes
    (fused(Mul(), (3, 4, 5), (3, 1, 1)), [(3, 20), (3, 1)]),
    # two operands that broadcast differently keep the axes apart
    (fused(Sum(), (3, 4, 5), (3, 1, 5), (4, 1)), [(3, 4, 5), (3, 1, 5), (4, 1)]),
    # nothing but axes of size 1
    (fused(Add(), (1, 1), (1,)), [(1,), (1,)]),
    # concatenation: what lies before the axis, and the axis with what lies behind it
    (fused(Concat(1), (2, 3, 4, 5), (2, 6, 4, 5)), [(2, 60), (2, 120)]),
    (fused(Concat(3), (1, 4, 5, 6), (1, 4, 5, 2), rest=((Relu(), None),)), [(20, 6), (20, 2)]),
    (fused(Concat(3), (1, 4, 5, 6), (1, 4, 5, 2), rest=((Add(), (8,)),)), [(20, 6), (20, 2), (8,)]),
    (fused(Concat(0), (1, 4), (2, 4)), [(4,), (8,)]),
    # transposition: NCHW -> NHWC is a matrix transposed
    (fused(Transpose((0, 2, 3, 1)), (1, 3, 4, 5)), [(3, 20)]),
    (fused(Transpose((0, 2, 3, 1)), (2, 3, 4, 5)), [(2, 3, 20)]),
    (fused(Transpose((1, 0)), (3, 4), rest=((Add(), (3,)),)), [(3, 4), (3,)]),
    (fused(Transpose((2, 0, 1)), (3, 1, 4), rest=((Relu(), None),)), [(3, 4)]),
    # softmax: rows and what is summed over
    (fused(Softmax((1, 2, 3)), (1, 1, 1, 10)), [(10,)]),
    (fused(Softmax((2, 3)), (2, 3, 4, 5)), [(6, 20)]),
    (fused(Softmax((1,)), (2, 3, 4)), [(2, 3, 4)]),
    # others stay
    (fused(MaxPool((2, 2), (2, 2), layout="NHWC"), (1, 4, 4, 3)), [(1, 4, 4, 3)]),
]


@pytest.mark.parametrize(("original", "expected"), CASES)
def test_axes_that_are_treated_alike_are_joined(
    original: FusedKernel, expected: list[Shape]
) -> None:
    small = collapsed(original)
    assert shapes(small) == expected
    np.testing.assert_array_equal(result(small), result(original))
    assert collapsed(small) is small


@pytest.mark.parametrize("keepdims", [True, False])
def test_a_reduction_to_one_number_is_that_of_a_row(keepdims: bool) -> None:
    original = fused(ReduceSum((0, 1, 2), keepdims), (3, 4, 5), rest=((Mul(), ()),))
    small = collapsed(original)
    assert shapes(small) == [(60,), (1,)]
    assert small.result.shape == (1,)
    np.testing.assert_allclose(result(small), result(original), rtol=1e-6)
    part = fused(ReduceSum((1, 2), keepdims), (3, 4, 5))
    assert collapsed(part) is part


def test_a_form_with_nothing_to_join_is_the_same_object() -> None:
    original = fused(Softmax((1,)), (2, 3, 4))
    assert collapsed(original) is original


def test_softmax_over_axes_of_size_one_stays() -> None:
    original = fused(Softmax((1,)), (2, 1))
    assert collapsed(original) is original


@pytest.mark.parametrize("bias", [(), ((7,),)])
@pytest.mark.parametrize("residual", [(1, 4, 5, 7), (7,), (1, 1, 1, 7), (1, 4, 5, 1)])
def test_a_1x1_convolution_is_a_matrix_product(bias: tuple[Shape, ...], residual: Shape) -> None:
    conv = Conv(layout="NHWC")
    original = fused(
        conv, (1, 4, 5, 6), (1, 1, 6, 7), *bias, rest=((Add(), residual), (Relu(), None))
    )
    product = as_matrix_product(original)
    assert product is not None
    assert shapes(product)[:2] == [(20, 6), (6, 7)]
    assert product.result.shape == (20, 7)
    np.testing.assert_allclose(result(product), result(original), rtol=1e-5, atol=1e-6)


def test_a_convolution_added_to_its_own_input_is_a_matrix_product() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (1, 4, 5, 6)))
    w = builder.input("w", TensorType("float32", (1, 1, 6, 6)))
    y = builder.add(Add(), builder.add(Conv(layout="NHWC"), x, w), x)
    graph = builder.finish((y,))
    original, _ = fused_kernel_of(graph, FusionGroup(graph.nodes))
    product = as_matrix_product(original)
    assert product is not None
    assert len(product.operands) == 2
    np.testing.assert_allclose(result(product), result(original), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "original",
    [
        fused(Conv(layout="NHWC", strides=(2, 2)), (1, 4, 4, 6), (1, 1, 6, 7)),
        fused(Conv(layout="NHWC", pads=(1, 1, 1, 1)), (1, 4, 4, 6), (1, 1, 6, 7)),
        fused(Conv(layout="NHWC", groups=2), (1, 4, 4, 6), (1, 1, 3, 8)),
        fused(Conv(layout="NHWC"), (1, 4, 4, 6), (2, 2, 6, 7)),
        fused(Conv(), (1, 6, 4, 4), (7, 6, 1, 1)),
        fused(Conv(layout="NHWC"), (1, 4, 5, 6), (1, 1, 6, 7), rest=((Add(), (4, 1, 7)),)),
        fused(Relu(), (3, 4)),
    ],
)
def test_other_convolutions_are_not(original: FusedKernel) -> None:
    assert as_matrix_product(original) is None
