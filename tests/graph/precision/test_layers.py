"""Which products may multiply bytes, and why others may not."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.precision.layers import KeptLayer, find_layers
from tilewright.graph.types import Constant, Splat, TensorType, owned


def weights(*shape: int, kind: str = "float32") -> Constant:
    return owned(np.random.default_rng(0).standard_normal(shape).astype(kind))


def layers_of(op: Operator, x: tuple[int, ...], w: Constant, *, kind: str = "float32") -> object:
    net = GraphBuilder("net")
    data = net.input("x", TensorType(kind, x))
    net.add(op, data, net.constant("w", w), output="y", name="the_product")
    return find_layers(net.finish(("y",)))


@pytest.mark.parametrize(
    ("op", "x", "w", "axis"),
    [
        (MatMul(), (5, 3), (3, 4), 1),
        (Gemm(), (5, 3), (3, 4), 1),
        (Gemm(trans_b=True), (5, 3), (4, 3), 0),
        (Conv(), (1, 3, 5, 5), (4, 3, 2, 2), 0),
        (Conv(groups=2), (1, 4, 5, 5), (4, 2, 2, 2), 0),
    ],
)
def test_a_layer_knows_the_axis_of_its_outputs(
    op: Operator, x: tuple[int, ...], w: tuple[int, ...], axis: int
) -> None:
    layers, kept = layers_of(op, x, weights(*w))  # type: ignore[misc]
    assert not kept
    (layer,) = layers
    assert (layer.name, layer.data, layer.weights, layer.result) == ("the_product", "x", "w", "y")
    assert layer.axis == axis


@pytest.mark.parametrize(
    ("op", "x", "w", "why"),
    [
        (Conv(groups=4), (1, 4, 5, 5), weights(4, 1, 2, 2), "its channels are in 4 groups"),
        (Conv(groups=4), (1, 4, 5, 5), weights(8, 1, 2, 2), "its channels are in 4 groups"),
        (
            Conv(groups=2),
            (1, 4, 5, 5),
            weights(6, 2, 2, 2),
            "its channels are in 2 groups, which fill no vectors",
        ),
        (MatMul(), (5, 3), Splat(1.0, "float32", (3, 4)), "its weights are all one number"),
        (
            MatMul(),
            (5, 1),
            owned(np.array([[np.inf]], np.float32)),
            "its weights have NaN or infinity",
        ),
        (
            MatMul(),
            (2, 5, 3),
            weights(2, 3, 4),
            "it multiplies another way than rows by columns",
        ),
        (
            Gemm(trans_a=True),
            (3, 5),
            weights(3, 4),
            "it multiplies another way than rows by columns",
        ),
        (
            MatMul(),
            (1, 1 << 16),
            weights(1 << 16, 1),
            "sums of 65536 products may exceed int32",
        ),
    ],
)
def test_what_is_kept_says_why(op: Operator, x: tuple[int, ...], w: Constant, why: str) -> None:
    assert layers_of(op, x, w) == ((), (KeptLayer("the_product", why),))


def test_a_product_of_other_floats_is_kept() -> None:
    assert layers_of(MatMul(), (5, 3), weights(3, 4, kind="float64"), kind="float64") == (
        (),
        (KeptLayer("the_product", "it computes float64"),),
    )


def test_a_bias_of_rows_is_no_bias_of_outputs() -> None:
    net = GraphBuilder("net")
    x = net.input("x", TensorType("float32", (5, 3)))
    bias = net.constant("c", weights(5, 4))
    net.add(Gemm(), x, net.constant("w", weights(3, 4)), bias, output="y")
    graph = net.finish(("y",))
    assert find_layers(graph) == (
        (),
        (KeptLayer("y", "its bias is not one number for each output"),),
    )


def test_what_a_run_computes_is_no_weight_and_no_bias() -> None:
    net = GraphBuilder("net")
    a = net.input("a", TensorType("float32", (5, 3)))
    b = net.input("b", TensorType("float32", (3, 4)))
    c = net.input("c", TensorType("float32", (4,)))
    net.add(MatMul(), a, b, output="y")
    net.add(Gemm(), a, net.constant("w", weights(3, 4)), c, output="z")
    assert find_layers(net.finish(("y", "z"))) == (
        (),
        (
            KeptLayer("y", "a run computes what it multiplies with"),
            KeptLayer("z", "a run computes its bias"),
        ),
    )
