"""Int16Products: which products of int16 and bytes become those of integers, and that no sum leaves
int32 where they do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tests.isas import HERE
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv, IntegerConv
from tilewright.graph.ops.matmul import Gemm, IntegerMatMul, MatMul
from tilewright.graph.passes.int16_products import Int16Products
from tilewright.graph.passes.integer_products import IntegerProducts
from tilewright.graph.passes.pipeline import GraphPass, left_out, run_by
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType, owned
from tilewright.tir.target.target import Target

from .quantised import Quantised

Apply = Callable[[GraphPass, Graph], Graph]


def kinds(graph: Graph) -> set[type]:
    return {type(node.op) for node in graph.nodes}


def product(steps: int = 96, zero: int = 0, weights: str = "int8") -> Graph:
    """Levels of int16 times bytes, a bias of integers, a Relu, rounded to int16."""
    net = Quantised(1)
    _, x = net.quantised_input(5, steps, dtype="int16", zero=zero)
    w = net.real(net.bytes_of("w", weights, steps, 24), net.number(0.01))
    whole = net.constant("b", owned(np.arange(-12, 12, dtype=np.int32) * 100_000))
    bias = net.real(whole, net.number(np.float32(0.03) * np.float32(0.01)))
    y = net.add(Relu(), net.add(Add(), net.add(MatMul(), x, w), bias))
    net.levels(y, net.number(0.5), net.number(0, "int16"), "int16", output="y")
    return net.finish(("y",))


def test_a_product_of_words_and_bytes_is_one_of_integers(apply: Apply) -> None:
    graph = product()
    after = apply(Int16Products(), graph)
    (node,) = [node for node in after.nodes if isinstance(node.op, IntegerMatMul)]
    assert [after.types[value].dtype for value in node.inputs] == ["int16", "int16"]
    assert MatMul not in kinds(after)
    x = np.random.default_rng(0).uniform(-1500, 1500, (5, 96)).astype(np.float32)
    wanted, found = (evaluate(one, {"x": x})["y"].astype(int) for one in (graph, after))
    assert np.abs(wanted - found).max() <= 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_gemm_may_have_its_weights_turned(apply: Apply, turned: bool) -> None:
    net = Quantised(2)
    _, x = net.quantised_input(4, 40, dtype="int16", zero=0)
    shape = (9, 40) if turned else (40, 9)
    w = net.real(net.bytes_of("w", "int8", *shape), net.number(0.02))
    net.add(Gemm(trans_b=turned), x, w, output="y")
    assert IntegerMatMul in kinds(apply(Int16Products(), net.finish(("y",))))


def test_a_convolution_is_one_of_integers(apply: Apply) -> None:
    net = Quantised(3)
    _, x = net.quantised_input(1, 8, 7, 7, dtype="int16", zero=0)
    scales = net.array(np.linspace(0.01, 0.02, 6, dtype=np.float32).reshape(6, 1, 1, 1))
    w = net.real(net.bytes_of("w", "int8", 6, 8, 3, 3), scales)
    net.add(Conv(pads=(1, 1, 1, 1)), x, w, output="y")
    assert IntegerConv in kinds(apply(Int16Products(), net.finish(("y",))))


def weights_of(size: int, bias: int = 0) -> Graph:
    """A product whose largest sum is 2**15 times the size; and a bias of integers."""
    net = Quantised()
    _, x = net.quantised_input(2, 600, dtype="int16", zero=0)
    levels = np.zeros((600, 3), np.int8)
    levels[: size // 127, 1] = -127
    levels[599, 1] = size % 127
    w = net.real(net.constant("w", owned(levels)), net.number(0.5))
    if not bias:
        net.add(MatMul(), x, w, output="y")
        return net.finish(("y",))
    whole = net.constant("b", owned(np.full(3, bias, np.int32)))
    added = net.real(whole, net.number(np.float32(0.03) * np.float32(0.5)))
    net.add(Add(), net.add(MatMul(), x, w), added, output="y")
    return net.finish(("y",))


def test_the_weights_show_that_no_sum_leaves_32_bits(apply: Apply) -> None:
    """2**15 times 65,535 is the last multiple of 2**15 below 2**31."""
    inside = weights_of(65535)
    after = apply(Int16Products(), inside)
    assert IntegerMatMul in kinds(after)
    signs = np.sign(np.asarray(inside.constants["w"]).astype(int)[:, 1])
    x = np.repeat(-1000.0 * signs[None], 2, axis=0).astype(np.float32)  # beyond the end of int16
    found = evaluate(after, {"x": x})["y"]
    assert found[0, 1] < -(2.0**31) * 0.015 * 0.99
    outside = weights_of(65536)
    assert Int16Products()(outside) is outside


@pytest.mark.parametrize(("bias", "kind"), [(32767, "int32"), (32768, "float32")])
def test_a_bias_with_which_a_sum_might_leave_them_is_added_to_floats(
    apply: Apply, bias: int, kind: str
) -> None:
    after = apply(Int16Products(), weights_of(65535, bias))
    added = [after.types[node.outputs[0]] for node in after.nodes if isinstance(node.op, Add)]
    assert [type_.dtype for type_ in added if type_.shape == (2, 3)] == [kind]


@pytest.mark.parametrize("graph", [product(zero=3), product(weights="uint8", steps=800)])
def test_a_zero_point_and_weights_that_are_too_large_leave_floats(graph: Graph) -> None:
    assert Int16Products()(graph) is graph


def test_bytes_are_not_its_affair_and_words_not_that_of_bytes() -> None:
    net = Quantised()
    _, x = net.quantised_input(5, 96)
    w = net.real(net.bytes_of("w", "int8", 96, 24), net.number(0.01))
    net.add(MatMul(), x, w, output="y")
    bytes_alone = net.finish(("y",))
    assert Int16Products()(bytes_alone) is bytes_alone
    words = product()
    assert IntegerProducts()(words) is words


def test_it_runs_where_pairs_of_words_are_multiplied_at_once() -> None:
    passes: tuple[GraphPass, ...] = (Int16Products(),)
    for name in ("c:avx2", "c:avx2+vnni", "c:avx512+vnni"):
        assert run_by(passes, Target.parse(name)) == passes
    for name in ("c:avx512", "c:neon+dotprod+i8mm", "cuda:sm_80"):
        assert len(left_out(passes, Target.parse(name))) == 1


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
def test_an_engine_multiplies_words_exactly(target: str) -> None:
    """Beside sums of int64, on data that saturate."""
    net = Quantised(5)
    levels = net.input("x", TensorType("int16", (6, 200)))
    x = net.real(levels, net.number(0.5))
    w = net.bytes_of("w", "int8", 200, 40)
    net.add(MatMul(), x, net.real(w, net.number(0.5)), output="y")
    graph = net.finish(("y",))
    engine = tw.compile(graph, target, cache=False)
    given = np.random.default_rng(1).choice([-32768, 32767, 5], (6, 200)).astype(np.int16)
    sums = given.astype(np.int64) @ np.asarray(graph.constants["w"]).astype(np.int64)
    found = engine(given)
    if run_by((Int16Products(),), Target.parse(target)):
        np.testing.assert_array_equal(found, sums.astype(np.float32) / 4)
        assert "Int16Products: equal" in str(engine.explain())
    else:
        np.testing.assert_allclose(found, sums / 4, rtol=1e-4, atol=1000)
