"""A fused kernel as a function: its text, and its value beside the operators' references."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.kernels.collapse import collapsed
from tilewright.graph.kernels.express import express
from tilewright.graph.kernels.fused_kernel import fused_kernel_of
from tilewright.graph.kernels.groups import FusionGroup
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Div, Mul, Sub
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.half_products import HalfConv
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType
from tilewright.tir.interpreter.interpreter import interpret


def scaled() -> Graph:
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (2, 4)))
    half = builder.constant("half", np.array([0.5], np.float32))
    y = builder.add(Relu(), builder.add(Mul(), x, half), output="y")
    return builder.finish((y,))


def test_a_scalar_stands_in_the_code() -> None:
    graph = scaled()
    func = express(collapsed(fused_kernel_of(graph, FusionGroup(graph.nodes))[0]))
    assert str(func) == (
        "def mul_relu(x: float32[8], relu: output(float32[8])):\n"
        '    scalar = alloc(float32[1], "global")\n'
        '    mul = alloc(float32[8], "global")\n'
        "    for i0 in range(1):\n"
        '        with block("scalar", vi0=spatial(1, i0)):\n'
        "            scalar[vi0] = 0.5\n"
        "    for i0 in range(8):\n"
        '        with block("mul", vi0=spatial(8, i0)):\n'
        "            mul[vi0] = x[vi0] * scalar[0]\n"
        "    for i0 in range(8):\n"
        '        with block("relu", vi0=spatial(8, i0)):\n'
        "            relu[vi0] = max(mul[vi0], 0.0)"
    )
    x = np.linspace(-1, 1, 8).astype(np.float32)
    (y,) = interpret(func, x, checked=True)
    np.testing.assert_array_equal(y, np.maximum(x * np.float32(0.5), 0))


def test_a_fused_convolution_computes_what_its_nodes_do() -> None:
    rng = np.random.default_rng(0)
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (1, 5, 5, 3)))
    r = builder.input("r", TensorType("float32", (1, 3, 3, 4)))
    w = builder.constant("w", rng.standard_normal((3, 3, 3, 4)).astype("float32"))
    b = builder.constant("b", rng.standard_normal(4).astype("float32"))
    conv = builder.add(Conv((2, 2), (1, 1, 1, 1), layout="NHWC"), x, w, b)
    y = builder.add(Relu(), builder.add(Add(), conv, r), output="y")
    graph = builder.finish((y,))
    func = express(fused_kernel_of(graph, FusionGroup(graph.nodes))[0])
    assert [(p.name, p.role) for p in func.parameters] == [
        ("x", "input"),
        ("w", "constant"),
        ("bias", "constant"),
        ("y", "input"),
        ("relu", "output"),
    ]
    feeds = {n: rng.standard_normal(graph.types[n].shape).astype("float32") for n in "xr"}
    arrays = (feeds["x"], graph.constants["w"], graph.constants["b"], feeds["r"])
    (got,) = interpret(func, *arrays, checked=True)  # type: ignore[arg-type]
    np.testing.assert_allclose(got, evaluate(graph, feeds)["y"], rtol=1e-5, atol=1e-5)


def test_data_of_16_bits_is_padded_as_it_is_where_others_do_not_compute_with_it() -> None:
    """Instructions multiply pairs of it; a sum that reads it, too, is one of float32."""

    def stages(*, is_residual: bool) -> dict[str, str]:
        builder = GraphBuilder("g")
        x = builder.input("x", TensorType("bfloat16", (1, 5, 5, 4)))
        w = builder.constant("w", np.ones((3, 3, 4, 4), ml_dtypes.bfloat16))
        y = builder.add(HalfConv((1, 1), (1, 1, 1, 1), layout="NHWC"), x, w)
        if is_residual:
            y = builder.add(Add(), y, builder.add(Cast("float32"), x))
        graph = builder.finish((y,))
        func = express(fused_kernel_of(graph, FusionGroup(graph.nodes))[0])
        image = np.random.default_rng(0).standard_normal((1, 5, 5, 4)).astype(ml_dtypes.bfloat16)
        (got,) = interpret(func, image, graph.constants["w"], checked=True)  # type: ignore[arg-type]
        wanted = evaluate(graph, {"x": image}, dtype="float32")[y]
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
        return {buffer.name: str(buffer.type) for buffer in func.allocations}

    assert stages(is_residual=False)["halfconv_pad"] == "bfloat16"
    assert stages(is_residual=True)["halfconv_pad"] == "float32"


def test_operands_keep_their_order() -> None:
    """(x - y) / 2 - (3 - x), by operators that no operand may be exchanged in."""
    builder = GraphBuilder("g")
    x, y = (builder.input(name, TensorType("float32", (2, 4))) for name in "xy")
    two, three = (builder.constant(f"c{n}", np.array(n, np.float32)) for n in (2, 3))
    half = builder.add(Div(), builder.add(Sub(), x, y), two)
    z = builder.add(Sub(), half, builder.add(Sub(), three, x), output="z")
    graph = builder.finish((z,))
    func = express(fused_kernel_of(graph, FusionGroup(graph.nodes))[0])
    assert [p.name for p in func.inputs] == ["x", "y"]
    one, other = np.arange(8, dtype=np.float32).reshape(2, 4), np.full((2, 4), 5, np.float32)
    (got,) = interpret(func, one, other, checked=True)
    np.testing.assert_array_equal(got, (one - other) / 2 - (3 - one))


def test_a_convolution_reads_data_that_lies_in_another_layout() -> None:
    rng = np.random.default_rng(0)
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (2, 3, 6, 5)))
    w = builder.constant("w", rng.standard_normal((3, 2, 3, 4)).astype("float32"))
    op = Conv((2, 1), (1, 0, 1, 1), layout="NHWC", data="NCHW")
    graph = builder.finish((builder.add(op, x, w, output="y"),))
    assert graph.types["y"].shape == (2, 3, 5, 4)
    func = express(fused_kernel_of(graph, FusionGroup(graph.nodes))[0])
    assert [block.name for block in func.blocks] == ["conv_pad", "conv_rows", "conv"]
    assert "conv_rows[vi0, vi1 * 2 + vk0, vc, vi2 + vk1]" in str(func)
    data = rng.standard_normal((2, 3, 6, 5)).astype("float32")
    (got,) = interpret(func, data, graph.constants["w"], checked=True)  # type: ignore[arg-type]
    expected = evaluate(graph, {"x": data})["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    (moved,) = Conv((2, 1), (1, 0, 1, 1), layout="NHWC").reference(
        np.moveaxis(data, 1, -1).astype("float64"),
        np.asarray(graph.constants["w"], np.float64),
    )
    np.testing.assert_allclose(expected, moved, rtol=1e-12)


def test_one_spatial_axis_is_read_where_it_lies() -> None:
    rng = np.random.default_rng(0)
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (2, 3, 9)))
    w = builder.constant("w", rng.standard_normal((3, 3, 4)).astype("float32"))
    op = Conv((2,), (1, 1), (1,), layout="NHWC", data="NCHW")
    graph = builder.finish((builder.add(op, x, w, output="y"),))
    func = express(fused_kernel_of(graph, FusionGroup(graph.nodes))[0])
    assert [block.name for block in func.blocks] == ["conv_pad", "conv"]
    data = rng.standard_normal((2, 3, 9)).astype("float32")
    (got,) = interpret(func, data, graph.constants["w"], checked=True)  # type: ignore[arg-type]
    expected = evaluate(graph, {"x": data})["y"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
