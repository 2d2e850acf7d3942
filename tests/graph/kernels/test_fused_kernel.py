"""Fused kernels: equal groups have equal ones, scalars stand in the code."""

from __future__ import annotations

import numpy as np

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.kernels.fused_kernel import FusedKernel, fused_kernel_of
from tilewright.graph.kernels.groups import FusionGroup
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast
from tilewright.graph.types import Splat, TensorType

X = TensorType("float32", (1, 4, 4, 8))


def scaled(prefix: str, factor: float = 0.5) -> tuple[FusedKernel, tuple[str, ...]]:
    """relu(x * factor) + x, under names that begin with `prefix`."""
    builder = GraphBuilder("g")
    x = builder.input(f"{prefix}x", X)
    c = builder.constant(f"{prefix}c", np.array(factor, np.float32))
    a = builder.add(Mul(), x, c, output=f"{prefix}a")
    b = builder.add(Relu(), a, output=f"{prefix}b")
    builder.add(Add(), b, x, output=f"{prefix}y")
    graph = builder.finish((f"{prefix}y",))
    return fused_kernel_of(graph, FusionGroup(graph.nodes))


def test_names_do_not_matter_and_scalars_do() -> None:
    (a, values), (b, _) = scaled("a"), scaled("b")
    assert a == b
    assert values == ("ax", "ac")
    assert scaled("a", 0.25)[0] != a


def test_a_scalar_is_told_from_its_negative_zero() -> None:
    assert scaled("a", 0.0)[0] != scaled("a", -0.0)[0]


def test_layers_of_bytes_with_other_scales_share_a_kernel() -> None:
    def layer(scale: float) -> FusedKernel:
        builder = GraphBuilder("g")
        x = builder.input("x", TensorType("uint8", (8,)))
        c = builder.constant("c", Splat(scale, "float32", ()))
        builder.add(Mul(), builder.add(Cast("float32"), x), c, output="y")
        graph = builder.finish(("y",))
        return fused_kernel_of(graph, FusionGroup(graph.nodes))[0]

    assert layer(0.02) == layer(0.03)
    assert layer(0.02).operands[1].scalar is None


def test_a_value_read_twice_is_one_operand() -> None:
    fused, _ = scaled("a")
    assert [operand.name for operand in fused.operands] == ["x", "scalar"]
    assert fused.operands[1].value == 0.5
    assert [step.inputs for step in fused.steps] == [(0, 1), (2,), (3, 0)]
    assert fused.result == X
    assert fused.name == "mul_relu_add"


def test_a_form_has_the_type_of_its_last_step() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", X)
    builder.add(Cast("int32"), builder.add(Relu(), x), output="y")
    graph = builder.finish(("y",))
    assert fused_kernel_of(graph, FusionGroup(graph.nodes))[0].result == TensorType(
        "int32", X.shape
    )


def test_a_long_chain_is_named_by_its_first_two_operators_and_its_last() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", X)
    value = builder.add(Relu(), builder.add(Mul(), x, x))
    for _ in range(2):
        value = builder.add(Mul(), value, x)
    builder.add(Add(), value, x, output="y")
    graph = builder.finish(("y",))
    assert fused_kernel_of(graph, FusionGroup(graph.nodes))[0].name == "mul_relu_2_more_add"


def test_operands_are_named_by_what_they_are_for() -> None:
    builder = GraphBuilder("g")
    x, r = builder.input("in", X), builder.input("residual", X)
    w = builder.constant("weights", Splat(0.5, "float32", (1, 1, 8, 8)))
    b = builder.constant("shift", Splat(0.5, "float32", (8,)))
    y = builder.add(Conv(layout="NHWC"), x, w, b)
    builder.add(Add(), y, r, output="y")
    graph = builder.finish(("y",))
    fused, values = fused_kernel_of(graph, FusionGroup(graph.nodes))
    assert [(o.name, o.constant) for o in fused.operands] == [
        ("x", False),
        ("w", True),
        ("bias", True),
        ("y", False),
    ]
    assert values == ("in", "weights", "shift", "residual")


def test_the_name_of_a_long_chain_is_cut() -> None:
    builder = GraphBuilder("g")
    value = builder.input("x", X)
    for _ in range(9):
        value = builder.add(Relu(), value)
    graph = builder.finish((value,))
    assert fused_kernel_of(graph, FusionGroup(graph.nodes))[0].name == "relu_relu_6_more_relu"
