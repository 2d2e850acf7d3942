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


@pytest.mark.parametrize("zero", [0, 1234])
def test_a_convolution_may_have_groups(apply: Apply, zero: int) -> None:
    net = Quantised(3)
    _, x = net.quantised_input(1, 8, 7, 7, dtype="int16", zero=zero)
    w = net.real(net.bytes_of("w", "int8", 8, 4, 3, 3), net.number(0.01))
    net.add(Conv(pads=(1, 1, 1, 1), groups=2), x, w, output="y")
    after = apply(Int16Products(), net.finish(("y",)))
    (op,) = (node.op for node in after.nodes if isinstance(node.op, IntegerConv))
    assert (op.groups, op.zero) == (2, zero)


def weights_of(size: int, bias: int = 0, zero: int = 0) -> Graph:
    """A product whose largest sum is 2**15 times the size; and a bias of integers."""
    net = Quantised()
    _, x = net.quantised_input(2, 600, dtype="int16", zero=zero)
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


@pytest.mark.parametrize("zero", [3, -700, 32767, -32768])
def test_data_may_have_a_zero_point(apply: Apply, zero: int) -> None:
    graph = product(zero=zero)
    after = apply(Int16Products(), graph)
    assert IntegerMatMul in kinds(after)
    x = np.random.default_rng(0).uniform(-1500, 1500, (5, 96)).astype(np.float32)
    wanted, found = (evaluate(one, {"x": x})["y"].astype(int) for one in (graph, after))
    assert np.abs(wanted - found).max() <= 1


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("each", [False, True])
def test_weights_may_have_zero_points(apply: Apply, each: bool, turned: bool) -> None:
    net = Quantised(4)
    _, x = net.quantised_input(5, 40, dtype="int16", zero=-90)
    zero = net.number(120, "uint8")
    if each:
        levels = np.arange(100, 109, dtype=np.uint8)
        zero = net.constant("zeros", owned(levels.reshape(9, 1) if turned else levels))
    shape = (9, 40) if turned else (40, 9)
    w = net.real(net.bytes_of("w", "uint8", *shape), net.number(0.02), zero)
    net.add(Gemm(trans_b=turned), x, w, output="y")
    after = apply(Int16Products(), net.finish(("y",)))
    assert IntegerMatMul in kinds(after)
    assert Gemm not in kinds(after)


@pytest.mark.parametrize(
    ("zero", "most"), [(0, 65535), (1, 65534), (-32768, 32767), (32767, 32768)]
)
def test_a_zero_point_leaves_less_for_the_weights(apply: Apply, zero: int, most: int) -> None:
    """2**15 and its size, times those of the weights, are below 2**31."""
    assert IntegerMatMul in kinds(apply(Int16Products(), weights_of(most, zero=zero)))
    outside = weights_of(most + 1, zero=zero)
    assert Int16Products()(outside) is outside


def of_run(known: bool = False, stacked: bool = False, weights: bool = False) -> Graph:
    """A zero point that a run decides, or that is known; of one product or of a stack; of weights
    that a run decides, or that are known.
    """
    net = Quantised(4)
    shape = (2, 5, 40) if stacked else (5, 40)
    x, scale = net.input("x", TensorType("float32", shape)), net.number(0.03)
    zero = net.number(7, "int16") if known else net.input("p", TensorType("int16", ()))
    data = net.real(net.levels(x, scale, zero, "int16"), scale, zero)
    sizes = (2, 40, 9) if stacked else (40, 9)
    drawn = "" if weights else net.bytes_of("w", "int8", *sizes)
    w = drawn or net.input("w", TensorType("int8", sizes))
    net.add(MatMul(), data, net.real(w, scale), output="y")
    return net.finish(("y",))


@pytest.mark.parametrize(
    "graph",
    [
        product(weights="uint8", steps=800),
        of_run(),
        of_run(known=True, stacked=True),
        of_run(known=True, weights=True),
    ],
    ids=["large weights", "a zero point of a run", "a zero point of a stack", "weights of a run"],
)
def test_what_the_weights_do_not_show_stays_floats(graph: Graph) -> None:
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


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("zero", [-32768, 900])
def test_an_engine_multiplies_words_in_groups_exactly(target: str, zero: int) -> None:
    """With a zero point, which is what borders have, on data at the ends of int16: sums of the
    products wrap around before what they lack is added.
    """
    net = Quantised(6)
    levels = net.input("x", TensorType("int16", (1, 8, 6, 5)))
    x = net.real(levels, net.number(0.5), net.number(zero, "int16"))
    w = net.bytes_of("w", "int8", 8, 4, 3, 3)
    op = Conv(pads=(1, 1, 1, 1), groups=2)
    net.add(op, x, net.real(w, net.number(0.5)), output="y")
    graph = net.finish(("y",))
    engine = tw.compile(graph, target, cache=False, verify="off")
    whole = np.asarray(graph.constants["w"]).astype(np.int64)
    rng = np.random.default_rng(1)
    for given in (
        rng.choice([-32768, 32767, 5], (1, 8, 6, 5)).astype(np.int16),
        np.full((1, 8, 6, 5), 32767, np.int16),
    ):
        (sums,) = op.reference(given.astype(np.int64) - zero, whole)
        found = engine(given)
        if run_by((Int16Products(),), Target.parse(target)):
            np.testing.assert_array_equal(found, sums.astype(np.float32) / 4)
        else:
            np.testing.assert_allclose(found, sums / 4, rtol=1e-4, atol=4000)
