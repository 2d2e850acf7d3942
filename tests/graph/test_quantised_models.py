"""Quantised models as engines: the bits of ONNX's products of levels on each instruction set."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv, IntegerConv
from tilewright.graph.ops.matmul import IntegerMatMul, MatMul
from tilewright.graph.types import Array, TensorType, owned
from tilewright.runtime.machine.host import host
from tilewright.tir.dtype import dtype
from tilewright.tir.target.target import covers

from .passes.quantised import Quantised

R, S, T = (np.float32(value) for value in (0.013, 0.0071, 0.37))
DATA_ZERO, RESULT_ZERO = 130, 100

# launches of two products: AVX2 without AVX-VNNI widens the input first
LAUNCHES = {"avx512+vnni": 2, "avx2+vnni": 2, "avx2": 3}
pytestmark = pytest.mark.needs_cc
each_target = pytest.mark.parametrize(
    "target",
    [
        pytest.param(
            f"c:{name}",
            marks=pytest.mark.skipif(
                not covers(host().instructions, name), reason=f"this machine has no {name}"
            ),
        )
        for name in LAUNCHES
    ],
)


def network(weights: Array, groups: int = 1) -> Graph:
    """Levels, a product or a convolution with a Relu behind it, levels."""
    net = Quantised()
    x = net.input("x", TensorType("uint8", input_shape(weights, groups)))
    data = net.real(x, net.number(R), net.number(DATA_ZERO, "uint8"))
    w = net.real(net.constant("w", owned(weights)), net.number(S))
    op = MatMul() if weights.ndim == 2 else Conv(pads=(1, 1, 1, 1), groups=groups)
    product = net.add(Relu(), net.add(op, data, w))
    net.levels(product, net.number(T), net.number(RESULT_ZERO, "uint8"), output="y")
    return net.finish(("y",))


def sums(weights: Array, groups: int = 1) -> Graph:
    """A product or a convolution of bytes alone."""
    net = Quantised()
    x = net.input("x", TensorType("uint8", input_shape(weights, groups)))
    op = IntegerMatMul() if weights.ndim == 2 else IntegerConv(pads=(1, 1, 1, 1), groups=groups)
    net.add(op, x, net.constant("w", owned(weights)), output="y")
    return net.finish(("y",))


def bytes_at_random(shape: tuple[int, ...], extreme: bool) -> Array:
    """Signed bytes; extreme: those at the ends of their range."""
    weights = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    return np.where(weights < 0, np.int8(-128), np.int8(127)) if extreme else weights


def inputs_of(weights: Array, extreme: bool, groups: int = 1) -> Array:
    """Data of `network`; extreme: the largest byte everywhere."""
    x = np.random.default_rng(1).integers(0, 256, input_shape(weights, groups)).astype(np.uint8)
    return np.full_like(x, 255) if extreme else x


def input_shape(weights: Array, groups: int = 1) -> tuple[int, ...]:
    """The shape of the input of `network`."""
    return (9, weights.shape[0]) if weights.ndim == 2 else (1, groups * weights.shape[1], 7, 6)


def sums_of(x: Array, weights: Array, zero: int = DATA_ZERO, groups: int = 1) -> Array:
    """What `network` sums up; that of `sums` has no zero."""
    centred, wide = x.astype(np.int32) - zero, weights.astype(np.int32)
    if weights.ndim == 2:
        return centred @ wide
    (whole,) = Conv(pads=(1, 1, 1, 1), groups=groups).reference(centred, wide)
    return whole


def levels(whole: Array) -> Array:
    """What QLinearMatMul and a Relu make of the sums of its products."""
    real = np.maximum(whole.astype(np.float32) * (R * S / T), np.float32(0))
    return np.clip(np.rint(real) + np.float32(RESULT_ZERO), 0, 255).astype(np.uint8)


@pytest.mark.sampled(4)
@each_target
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("int8", (37, 20)),
        ("int8", (20, 5, 3, 3)),
        ("int8", (8, 3, 3, 3)),
        ("int8", (16, 8, 1, 1)),
        ("int4", (20, 5, 3, 3)),
    ],
)
def test_a_result_has_the_bits_of_a_product_of_levels(
    kind: str, shape: tuple[int, ...], extreme: bool, target: str
) -> None:
    """Extreme: all bytes at the ends of their range, where pairs do not fit 16 bits."""
    weights = bytes_at_random(shape, extreme) >> (0 if kind == "int8" else 4)
    graph = network(weights.astype(dtype(kind).numpy))
    engine = tw.compile(graph, target, verify="off", cache=False)
    x = inputs_of(weights, extreme)
    np.testing.assert_array_equal(engine(x), levels(sums_of(x, weights)))


@pytest.mark.sampled(5)
@each_target
@pytest.mark.parametrize("number", [-128, 127])
@pytest.mark.parametrize("shape", [(64, 20), (20, 16, 3, 3)])
def test_sums_of_the_most_that_bytes_make_are_exact(
    shape: tuple[int, ...], number: int, target: str
) -> None:
    """255 times the same number, everywhere, as int32."""
    weights = np.full(shape, number, np.int8)
    engine = tw.compile(sums(weights), target, verify="off", cache=False)
    x = inputs_of(weights, extreme=True)
    found = engine(x)
    terms = shape[0] if len(shape) == 2 else weights[0].size
    assert np.abs(found).max() == terms * 255 * abs(number)
    np.testing.assert_array_equal(found, sums_of(x, weights, zero=0))


@pytest.mark.sampled(6)
@each_target
@pytest.mark.parametrize("number", [-128, 127])
@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize(
    ("groups", "shape"),
    [
        (2, (32, 16, 3, 3)),
        (3, (60, 8, 1, 1)),
        (8, (32, 4, 3, 3)),
        (2, (48, 6, 3, 3)),
        (4, (24, 3, 3, 3)),
        (4, (4, 5, 3, 3)),
    ],
)
def test_groups_have_the_bits_of_products_of_levels(
    groups: int, shape: tuple[int, ...], drawn: bool, number: int, target: str
) -> None:
    """Of bytes at random, and of 255 times the same number everywhere."""
    weights = bytes_at_random(shape, extreme=False) if drawn else np.full(shape, number, np.int8)
    x = inputs_of(weights, not drawn, groups)
    engine = tw.compile(network(weights, groups), target, verify="off", cache=False)
    np.testing.assert_array_equal(engine(x), levels(sums_of(x, weights, groups=groups)))
    exact = tw.compile(sums(weights, groups), target, verify="off", cache=False)
    np.testing.assert_array_equal(exact(x), sums_of(x, weights, 0, groups))
    units = ("vpdpbusd", "vpmaddwd")
    assert groups == shape[0] or any(unit in engine.source for unit in units)


@each_target
def test_two_products_store_no_floats_between_them(target: str) -> None:
    net = Quantised()
    x = net.input("x", TensorType("uint8", (32, 24)))
    value = net.real(x, net.number(R), net.number(DATA_ZERO, "uint8"))
    for n in range(2):
        w = net.real(net.bytes_of(f"w{n}", "int8", 24, 24), net.number(S))
        bias = net.array(np.linspace(-1, 1, 24, dtype=np.float32))
        made = net.levels(
            net.add(Add(), net.add(MatMul(), value, w), bias),
            net.number(T),
            net.number(RESULT_ZERO, "uint8"),
            output=f"y{n}",
        )
        value = net.real(made, net.number(T), net.number(RESULT_ZERO, "uint8"))
    engine = tw.compile(net.finish(("y1",)), target, verify="off", cache=False)
    assert len(engine.explain().order) == LAUNCHES[target.removeprefix("c:")]
