"""IntegerProducts: which products become those of bytes, with what follows, and which do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Div, Mul
from tilewright.graph.ops.convolution import Conv, ExactConv, IntegerConv
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.matmul import Gemm, IntegerMatMul, MatMul
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.passes.constant_folding import ConstantFolding
from tilewright.graph.passes.integer_products import IntegerProducts
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType, owned

from .quantised import Quantised

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]


def kinds(graph: Graph) -> set[type]:
    return {type(node.op) for node in graph.nodes}


def test_a_chain_has_no_float_but_in_its_epilogue(apply: Apply, lines: Lines) -> None:
    net = Quantised()
    _, x = net.quantised_input(5, 12)
    w = net.real(net.bytes_of("w", "int8", 12, 6), net.number(0.01))
    whole = net.constant("b", owned(np.arange(-3, 3, dtype=np.int32) * 5_000_000))
    bias = net.real(whole, net.number(np.float32(0.03) * np.float32(0.01)))
    y = net.add(Relu(), net.add(Add(), net.add(MatMul(), x, w), bias))
    net.levels(y, net.number(0.5), net.number(3, "uint8"), output="y")
    after = ConstantFolding()(apply(IntegerProducts(), net.finish(("y",))))
    assert lines(after)[4:] == [
        "div_1.integermatmul = IntegerMatMul(cast_1, w)",
        "div_1.add = Add(div_1.integermatmul, div_1.sub)",
        "div_1.cast = Cast[to='float32'](div_1.add)",
        "div_1.mul_1 = Mul(div_1.cast, splat(0.0006))",
        "div_1 = Relu(div_1.mul_1)",
        "round_1 = Round(div_1)",
        "add_2 = Add(round_1, splat(3))",
        "y = Cast[to='uint8'](add_2)",
    ]


@pytest.mark.parametrize("data", ["int8", "uint8", "int4", "uint4"])
@pytest.mark.parametrize("weights", ["int8", "uint8", "int4", "uint4", "int2"])
@pytest.mark.parametrize("per_output", [False, True])
def test_bytes_with_and_without_sign(
    apply: Apply, data: str, weights: str, per_output: bool
) -> None:
    net = Quantised(1)
    _, x = net.quantised_input(3, 4, 9, dtype=data, zero=5 if data[0] == "u" else -5)
    scale = net.number(0.02)
    zero = net.number(1 if weights == "int2" else 7, weights)
    if per_output:
        scale = net.array(np.linspace(0.01, 0.02, 7, dtype=np.float32))
        zero = net.bytes_of("zeros", weights, 7)
    w = net.real(net.bytes_of("w", weights, 9, 7), scale, zero)
    net.add(MatMul(), x, w, output="y")
    assert IntegerMatMul in kinds(apply(IntegerProducts(), net.finish(("y",))))


def test_levels_without_a_sign_become_bytes_without_one(apply: Apply, lines: Lines) -> None:
    net = Quantised(1)
    levels, x = net.quantised_input(3, 9, dtype="uint4", zero=5)
    w = net.real(net.bytes_of("w", "int8", 9, 7), net.number(0.02))
    net.add(MatMul(), x, w, output="y")
    after = apply(IntegerProducts(), net.finish(("y",)))
    assert f"y.cast = Cast[to='uint8']({levels})" in lines(after)
    assert "y.integermatmul = IntegerMatMul(y.cast, w)" in lines(after)


@pytest.mark.parametrize("zero", [0, 9])
@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_pad_with_what_stands_for_nothing(
    apply: Apply, zero: int, weights: str, known: bool, groups: int
) -> None:
    net = Quantised(2)
    x = net.input("x", TensorType("float32", (2, 4 * groups, 7, 6)))
    scale = net.number(0.03)
    if known:
        zero_ = net.number(zero, "uint8")
    else:
        zero_ = net.add(Cast("uint8"), net.input("z", TensorType("float32", ())))
    data = net.real(net.levels(x, scale, zero_), scale, zero_)
    scales = net.array(np.linspace(0.01, 0.02, 6, dtype=np.float32).reshape(6, 1, 1, 1))
    zeros = net.number(0 if weights == "int8" else 120, weights)
    w = net.real(net.bytes_of("w", weights, 6, 4, 3, 2), scales, zeros)
    if groups == 2:  # of four outputs each
        w = net.real(net.bytes_of("v", weights, 8, 4, 3, 2), net.number(0.01), zeros)
    bias = net.array(np.linspace(-1, 1, 6 if groups == 1 else 8, dtype=np.float32))
    op = Conv((2, 1), (1, 0, 2, 1), (1, 2), groups)
    net.add(op, data, w, bias, output="y")
    found = kinds(apply(IntegerProducts(), net.finish(("y",))))
    assert IntegerConv in found
    assert Conv not in found


def depthwise(
    data: str = "uint8",
    weights: str = "int8",
    taps: int = 3,
    bias: int | None = 5_000,
    known: bool = True,
) -> Graph:
    """A convolution of each channel by itself, with a bias of integers, between levels."""
    net = Quantised(2)
    x = net.input("x", TensorType("float32", (2, 4, taps + 9, 6)))
    scale, zero = net.number(0.03), net.number(9, data)
    if not known:
        zero = net.add(Cast(data), net.input("z", TensorType("float32", ())))
    real = net.real(net.levels(x, scale, zero, data), scale, zero)
    scales = np.linspace(0.01, 0.02, 4, dtype=np.float32)
    zeros = net.number(0 if weights == "int8" else 120, weights)
    w = net.bytes_of("w", weights, 4, 1, taps, 2)
    filters = net.real(w, net.array(scales.reshape(4, 1, 1, 1)), zeros)
    given = [real, filters]
    if bias is not None:
        whole = net.array(np.array([-bias, 0, 1, bias], np.int32))
        given.append(net.real(whole, net.array(scales * np.float32(0.03))))
    y = net.add(Conv((2, 1), (1, 0, 2, 1), (1, 2), groups=4), *given)
    net.levels(y, net.number(0.5), net.number(3, "uint8"), output="y")
    return net.finish(("y",))


@pytest.mark.parametrize("data", ["int8", "uint8"])
@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("bias", [None, 5_000])
def test_channels_by_themselves_are_summed_exactly(
    apply: Apply, data: str, weights: str, bias: int | None
) -> None:
    after = apply(IntegerProducts(), depthwise(data, weights, bias=bias))
    found = kinds(after)
    assert ExactConv in found
    assert Conv not in found
    (padded,) = (node.op.zero for node in after.nodes if isinstance(node.op, ExactConv))
    assert padded == 9


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (depthwise(known=False), "a run decides what stands for 0"),
        (depthwise(weights="uint8", taps=400), "sums are too large for float32"),
    ],
)
def test_channels_whose_sums_may_be_rounded_stay_floats(
    apply: Apply, graph: Graph, reason: str
) -> None:
    assert Conv in kinds(apply(IntegerProducts(), graph)), reason


def test_a_bias_that_float32_rounds_is_added_as_a_float(apply: Apply, lines: Lines) -> None:
    """Its sum with the products might be rounded before the scale."""

    def behind(bias: int) -> list[str]:
        found = [one.split(" = ")[1].partition("(")[0].partition("[")[0] for one in text(bias)]
        return found[found.index("ExactConv") :]

    def text(bias: int) -> list[str]:
        return [
            one for one in lines(apply(IntegerProducts(), depthwise(bias=bias))) if " = " in one
        ]

    assert behind(5_000)[1:3] == ["Add", "Mul"]
    assert behind(2**24)[1:4] == ["Add", "Mul", "Add"]


def test_weights_may_be_transposed(apply: Apply) -> None:
    net = Quantised(3)
    _, x = net.quantised_input(4, 6)
    scales = net.array(np.linspace(0.01, 0.02, 5, dtype=np.float32).reshape(5, 1))
    w = net.real(net.bytes_of("w", "uint8", 5, 6), scales, net.number(128, "uint8"))
    bias = net.array(np.linspace(-1, 1, 5, dtype=np.float32))
    by_gemm = net.add(Gemm(alpha=0.5, trans_b=True), x, w, bias)
    by_move = net.add(MatMul(), x, net.add(Transpose((1, 0)), w))
    net.add(Add(), by_gemm, by_move, output="y")
    found = kinds(apply(IntegerProducts(), net.finish(("y",))))
    assert IntegerMatMul in found
    assert not found & {Gemm, MatMul}


def test_the_scale_of_the_data_may_be_made_in_a_run(apply: Apply) -> None:
    net = Quantised(4)
    x = net.input("x", TensorType("float32", (4, 6)))
    scale = net.add(Mul(), net.input("s", TensorType("float32", ())), net.number(0.01))
    rows = net.input("r", TensorType("float32", (4, 1)))
    w = net.real(net.bytes_of("w", "int8", 6, 5), net.number(0.01))
    for n, one in enumerate((scale, rows)):
        data = net.real(net.add(Cast("uint8"), x), one, net.number(3, "uint8"))
        net.add(MatMul(), data, w, output=f"y{n}")
    assert MatMul not in kinds(apply(IntegerProducts(), net.finish(("y0", "y1"))))


def test_what_the_sums_are_multiplied_with_is_that_of_qlinearmatmul(apply: Apply) -> None:
    """(r * s) / t, each rounded to float32; so the levels of a result have the same bits."""
    net = Quantised(5)
    x = net.input("x", TensorType("uint8", (64, 33)))
    r, s, t = (np.float32(value) for value in (0.013, 0.0071, 0.37))
    data = net.real(x, net.number(r), net.number(130, "uint8"))
    w = net.real(net.bytes_of("w", "int8", 33, 20), net.number(s))
    net.levels(net.add(MatMul(), data, w), net.number(t), net.number(100, "uint8"), output="y")
    graph = net.finish(("y",))
    after = IntegerProducts()(graph)
    drawn = np.random.default_rng(0).integers(0, 256, (64, 33)).astype(np.uint8)
    found = evaluate(after, {"x": drawn}, dtype=None)["y"]
    sums = (drawn.astype(np.int32) - 130) @ np.asarray(graph.constants["w"]).astype(np.int32)
    levels = np.rint(sums.astype(np.float32) * (r * s / t)) + np.float32(100)
    np.testing.assert_array_equal(found, np.clip(levels, 0, 255).astype(np.uint8))


@pytest.mark.parametrize(
    "case",
    [
        "weights of a run",
        "a scale of a run",
        "a scale for each term",
        "too many terms",
        "a zero between two levels",
        "groups",
        "levels of 32 bits",
        "a bias of a run",
    ],
)
def test_other_products_stay(case: str) -> None:
    net = Quantised(6)
    terms = (1 << 15) + 1 if case == "too many terms" else 6
    levels, x = net.quantised_input(2, terms)
    scale, zero = net.number(0.01), ""
    w = net.bytes_of("w", "int8", terms, 5)
    if case == "weights of a run":
        w = net.add(Cast("int8"), net.input("w_", TensorType("float32", (terms, 5))))
    if case == "a scale of a run":
        scale = net.input("s", TensorType("float32", ()))
    if case == "a scale for each term":
        scale = net.array(np.linspace(0.01, 0.02, 6, dtype=np.float32).reshape(6, 1))
    if case == "a zero between two levels":
        data = net.add(Add(), net.add(Cast("float32"), levels), net.number(0.5))
        x = net.add(Mul(), data, net.number(0.03))
    if case == "levels of 32 bits":
        x = net.real(net.add(Cast("int32"), levels), net.number(0.03))
    if case == "groups":
        _, x = Quantised.quantised_input(net := Quantised(7), 1, 4, 5, 5)
        w = net.real(net.bytes_of("w", "int8", 6, 2, 3, 3), net.number(0.01))
        net.add(Conv(groups=2), x, w, output="y")
    elif case == "a bias of a run":
        bias = net.input("b", TensorType("float32", (5,)))
        net.add(Gemm(), x, net.real(w, scale), bias, output="y")
    else:
        net.add(MatMul(), x, net.real(w, scale, zero), output="y")
    graph = net.finish(("y",))
    assert IntegerProducts()(graph) is graph


@pytest.mark.parametrize("step", [0.5, -0.5])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("op", [Div(), Mul()])
def test_a_bias_of_floats_and_a_relu_join_where_that_is_the_same(
    apply: Apply, step: float, late: bool, op: Div | Mul
) -> None:
    """The bias is scaled, too; a negative divisor or factor stays, and a bias behind a Relu."""
    net = Quantised(9)
    _, x = net.quantised_input(4, 6)
    product = net.add(MatMul(), x, net.real(net.bytes_of("w", "int8", 6, 5), net.number(0.01)))
    bias = net.array(np.linspace(-3, 3, 5, dtype=np.float32))
    steps = (Relu(), Add()) if late else (Add(), Relu())
    for one in steps:
        product = net.add(one, product, *((bias,) if one == Add() else ()))
    factor = net.number(step)
    net.add(op, product, factor, output="y")
    after = apply(IntegerProducts(), net.finish(("y",)))
    assert IntegerMatMul in kinds(after)
    (last,) = [node for node in after.nodes if node.outputs == ("y",)]
    assert (last.op == op and factor in last.inputs) == (step < 0 or late)


def test_what_others_read_joins_nothing(apply: Apply) -> None:
    net = Quantised(8)
    _, x = net.quantised_input(4, 6)
    w = net.real(net.bytes_of("w", "int8", 6, 5), net.number(0.01))
    product = net.add(MatMul(), x, w)
    net.levels(product, net.number(0.5), net.number(3, "uint8"), output="y")
    net.add(Relu(), product, output="z")
    graph = net.finish(("y", "z"))
    after = apply(IntegerProducts(), graph)
    assert product in {value for node in after.nodes for value in node.outputs}


def test_the_conv_of_bytes_is_that_of_integers() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (1, 3, 5, 4)).astype(np.uint8)
    w = rng.integers(-128, 128, (2, 3, 3, 3)).astype(np.int8)
    op = IntegerConv(pads=(1, 1, 1, 1), zero=9)
    (found,) = op.reference(x, w)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=9)
    plain = Conv().reference(padded.astype(np.int32), w.astype(np.int32))[0]
    np.testing.assert_array_equal(found, plain)
    last = replace(op, layout="NHWC").reference(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0))
    np.testing.assert_array_equal(last[0].transpose(0, 3, 1, 2), found)


def test_int32_holds_the_largest_sum_and_a_bias_that_might_not_fit_is_added_as_floats() -> None:
    terms, most = 1 << 15, 255 * 255 * (1 << 15)
    for number in (2**31 - most - 1, 2**31 - most):
        net = Quantised()
        x = net.input("x", TensorType("uint8", (1, terms)))
        data = net.real(x, net.number(1.0))
        w = net.constant("w", owned(np.full((terms, 1), 255, np.uint8)))
        bias = net.constant("b", owned(np.array([number], np.int32)))
        product = net.add(MatMul(), data, net.real(w, net.number(1.0)))
        net.add(Add(), product, net.real(bias, net.number(1.0)), output="y")
        graph = net.finish(("y",))
        after = IntegerProducts()(graph)
        whole = [c for c in after.constants.values() if str(c.dtype) == "int32"]
        assert any(number in np.asarray(getattr(c, "value", c)) for c in whole) == (
            number < 2**31 - most
        )
        given = {"x": np.full((1, terms), 255, np.uint8)}
        found = evaluate(after, given, dtype=None)["y"]
        np.testing.assert_allclose(found, [[float(most + number)]], rtol=1e-7)
