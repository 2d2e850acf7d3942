"""Which products get operands of 16 bits, and what a graph becomes."""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.half_products import HalfConv, HalfMatMul
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.precision.halves import (
    HalfProducts,
    PrecisionError,
    ProductPrecision,
    choose_halves,
)
from tilewright.graph.reference.oracle import ModelOracle
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType, array_of, owned

FASTEST = {"weights": 2.0, "both": 1.0, "float32": 4.0, "cast": 0.5}
rng = np.random.default_rng(0)


def weights(*shape: int) -> Array:
    return owned(rng.standard_normal(shape).astype(np.float32))


def residual() -> Graph:
    """r = relu(x w0); y = (r w1) + r, a bias within the second product."""
    builder = GraphBuilder("residual")
    x = builder.input("x", TensorType("float32", (3, 8)))
    w0, w1 = (builder.constant(f"w{n}", weights(8, 8)) for n in range(2))
    bias = builder.constant("b", weights(8))
    r = builder.add(Relu(), builder.add(MatMul(), x, w0, output="m", name="first"), output="r")
    p = builder.add(Gemm(trans_b=True), r, w1, bias, output="p", name="second")
    return builder.finish((builder.add(Add(), p, r, output="y"),))


def prices(given: Mapping[str, float] = FASTEST) -> object:
    """Seconds by the form of the one node of a graph."""

    def price(graph: Graph) -> float:
        (node,) = graph.nodes
        if isinstance(node.op, Cast):
            return given["cast"]
        if not isinstance(node.op, HalfMatMul | HalfConv):
            return given["float32"]
        return given["weights" if graph.types["x"].dtype == "float32" else "both"]

    return price


def chosen(
    graph: Graph,
    precision: str | Mapping[str, str] = "bfloat16",
    given: Mapping[str, float] = FASTEST,
    *,
    pairs: bool = True,
) -> tuple[ProductPrecision, ...]:
    return choose_halves(graph, graph, precision, prices(given), pairs=pairs)  # type: ignore[arg-type]


def operators(graph: Graph) -> list[str]:
    return [
        f"{node.outputs[0]} = {node.op.title}({', '.join(node.inputs)})" for node in graph.nodes
    ]


def test_weights_are_rounded_where_that_is_clearly_faster() -> None:
    graph = residual()
    found = chosen(graph, "float16")
    assert [one.form for one in found] == ["weights", "weights"]
    after = HalfProducts(found)(graph)
    assert operators(after) == [
        "m = HalfMatMul(x, w0.half)",
        "r = Relu(m)",
        "p.product = HalfMatMul(r, w1.half)",
        "p = Add(p.product, b)",
        "y = Add(p, r)",
    ]
    w0, w1 = (array_of(graph.constants[name]) for name in ("w0", "w1"))
    np.testing.assert_array_equal(after.constants["w0.half"], w0.astype(np.float16))
    np.testing.assert_array_equal(after.constants["w1.half"], w1.T.astype(np.float16))
    assert "w0" not in after.constants


def test_data_are_rounded_once_and_widened_for_what_reads_them_elementwise() -> None:
    graph = residual()
    after = HalfProducts(chosen(graph))(graph)
    assert operators(after) == [
        "x.half = Cast(x)",
        "m = HalfMatMul(x.half, w0.half)",
        "r = Relu(m)",
        "r.half = Cast(r)",
        "r.wide = Cast(r.half)",
        "p.product = HalfMatMul(r.half, w1.half)",
        "p = Add(p.product, b)",
        "y = Add(p, r.wide)",
    ]
    given = {"x": rng.standard_normal((3, 8)).astype(np.float32)}
    (got,), (wanted,) = (evaluate(g, given, dtype=None).values() for g in (after, graph))
    error = np.abs(got - wanted).max() / np.abs(wanted).max()
    assert 1e-4 < error < 2**-6


def test_data_that_others_read_whole_are_rounded_apart() -> None:
    builder = GraphBuilder("attention")
    x = builder.input("x", TensorType("float32", (3, 8)))
    r = builder.add(Relu(), x, output="r")
    p = builder.add(MatMul(), r, builder.constant("w", weights(8, 8)), output="p")
    graph = builder.finish((builder.add(Add(), p, builder.add(Softmax((1,)), r), output="y"),))
    after = HalfProducts(chosen(graph))(graph)
    assert "softmax = Softmax(r)" in operators(after)
    assert "p = HalfMatMul(r.half, w.half)" in operators(after)
    # rounding is a launch then: 1 + 0.5 is no tenth less than 1.6
    assert chosen(graph, given={**FASTEST, "weights": 1.6})[0].form == "weights"


@pytest.mark.parametrize(
    ("given", "pairs", "form"),
    [
        (FASTEST, True, "both"),
        (FASTEST, False, "weights"),
        ({**FASTEST, "both": 1.9}, True, "weights"),  # not a tenth less, and rounds more
        ({**FASTEST, "weights": 3.7, "both": 3.7}, True, "float32"),
        ({**FASTEST, "weights": 0.9 * FASTEST["float32"]}, False, "float32"),  # a tie
        ({**FASTEST, "weights": 0.89 * FASTEST["float32"]}, False, "weights"),
        (dict.fromkeys(FASTEST, 0.0), True, "float32"),  # nothing to compute, at any type
    ],
)
def test_the_form_is_that_of_a_price_that_is_clearly_lower(
    given: Mapping[str, float], pairs: bool, form: str
) -> None:
    second = chosen(residual(), given=given, pairs=pairs)[1]
    assert second.form == form
    if form == "float32":
        assert second.reason == "not clearly faster in bfloat16"
        assert second.times is not None
        assert (second.times.narrow, second.times.floats) == (given["weights"], given["float32"])
        assert second.layer.precision == "float32"
    assert second.layer.times is second.times


def test_a_product_that_is_named_is_rounded_at_any_price() -> None:
    graph = residual()
    slow = {**FASTEST, "weights": 9.0, "both": 9.0}
    for name in ("second", "p"):
        (one,) = chosen(graph, {name: "bfloat16"}, slow)
        assert (one.node.name, one.form) == ("second", "weights")
    assert chosen(graph, {"second": "float32"}) == ()
    two = chosen(graph, {"second": "float16", "first": "bfloat16"}, pairs=False)
    assert [(one.layer.layer, one.layer.precision, one.layer.reason) for one in two] == [
        ("first", "weights in bfloat16", "as asked"),
        ("second", "weights in float16", "as asked"),
    ]


def test_a_name_that_several_nodes_have_is_that_of_the_product() -> None:
    builder = GraphBuilder("layer")
    x = builder.input("x", TensorType("float32", (3, 8)))
    r = builder.add(Relu(), x, output="r", name="linear")
    w = builder.constant("w", weights(8, 8))
    graph = builder.finish((builder.add(MatMul(), r, w, output="y", name="linear"),))
    (one,) = chosen(graph, {"linear": "float16"}, pairs=False)
    assert (one.node.outputs, one.form) == (("y",), "weights")
    with pytest.raises(PrecisionError, match=r"'r': it is node 'linear' \(Relu\), and a product"):
        chosen(graph, {"r": "float16"})


def test_what_passes_call_otherwise_is_found_by_its_value() -> None:
    builder = GraphBuilder("plain")
    x = builder.input("x", TensorType("float32", (3, 8)))
    w = builder.constant("w", weights(8, 8))
    imported = builder.finish((builder.add(Relu(), builder.add(MatMul(), x, w, output="m")),))
    builder = GraphBuilder.like(imported)
    moved = builder.add(MatMul(), x, w, output="m.last")
    after = builder.finish({imported.outputs[0]: builder.add(Relu(), moved)})
    (one,) = choose_halves(imported, after, {"m": "float16"}, prices(), pairs=False)  # type: ignore[arg-type]
    assert one.node.outputs == ("m.last",)


def one_product(op: Operator, x: tuple[int, ...], w: Array | None, *others: Array) -> Graph:
    """A product by constant weights, or by another input."""
    builder = GraphBuilder("one")
    inputs = [builder.input("x", TensorType("float32", x))]
    if w is None:
        inputs.append(builder.input("w", TensorType("float32", x[::-1])))
    else:
        inputs.append(builder.constant("w", w))
    inputs += [builder.constant(f"c{n}", array) for n, array in enumerate(others)]
    return builder.finish((builder.add(op, *inputs, output="y", name="fc"),))


LARGE = owned(np.full((8, 4), 1e5, np.float32) * np.arange(1, 5, dtype=np.float32))
KEPT = {
    "its weights are no constant": one_product(MatMul(), (3, 8), None),
    "its weights do not fit float16": one_product(MatMul(), (3, 8), LARGE),
    "it scales or transposes its operands": one_product(Gemm(alpha=2.0), (3, 8), weights(8, 4)),
    "it has groups": one_product(Conv(groups=2, layout="NHWC"), (1, 5, 5, 4), weights(3, 3, 2, 4)),
    "it reads few channels where they lie": one_product(
        Conv(layout="NHWC", data="NCHW"), (1, 3, 5, 5), weights(3, 3, 3, 4)
    ),
}


@pytest.mark.parametrize("why", KEPT)
def test_what_cannot_be_rounded_says_why(why: str) -> None:
    graph = KEPT[why]
    (one,) = chosen(graph, "float16")
    assert (one.form, one.reason) == ("float32", why)
    assert HalfProducts((one,))(graph) is graph
    with pytest.raises(PrecisionError) as caught:
        chosen(graph, {"fc": "float16"})
    title = graph.nodes[0].title
    assert str(caught.value) == (
        f"PrecisionError: compile: precision asks for {title} in float16: {why}. "
        "[precision-product]\n"
        "  Hint: leave it out of precision=...: it stays float32."
    )


def test_numbers_that_do_not_fit_float16_fit_bfloat16() -> None:
    graph = KEPT["its weights do not fit float16"]
    after = HalfProducts(chosen(graph, pairs=False))(graph)
    np.testing.assert_array_equal(after.constants["w.half"], LARGE.astype(ml_dtypes.bfloat16))


def test_unknown_names_are_refused_with_near_ones() -> None:
    with pytest.raises(PrecisionError) as caught:
        chosen(residual(), {"secnd": "bfloat16"})
    assert str(caught.value) == (
        "PrecisionError: compile: precision names 'secnd': the model has no such node or value; "
        "its products are 'second', 'first'. [precision-name]"
    )
    with pytest.raises(PrecisionError) as caught:
        chosen(residual(), {"r": "bfloat16"})
    assert str(caught.value) == (
        "PrecisionError: compile: precision names 'r': it is node 'r' (Relu), and a product was "
        "expected; its products are 'first', 'second'. [precision-name]"
    )


def test_products_that_passes_took_in_are_refused() -> None:
    imported = residual()
    after = one_product(MatMul(), (3, 8), weights(8, 4))
    with pytest.raises(PrecisionError) as caught:
        choose_halves(imported, after, {"first": "bfloat16"}, prices(), pairs=False)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "PrecisionError: compile: precision names 'first', which a pass made a part of another "
        "operator. [precision-merged]\n"
        "  Hint: engine.explain() says what each pass did; passes=tw.PASSES.without(...) leaves "
        "one out."
    )


def test_a_reference_has_values_of_16_bits_where_data_are_rounded() -> None:
    graph = residual()
    assert not ModelOracle(graph).stores_halves
    assert not ModelOracle(HalfProducts(chosen(graph, pairs=False))(graph)).stores_halves
    assert ModelOracle(HalfProducts(chosen(graph))(graph)).stores_halves


def test_nothing_is_replaced_where_nothing_was_decided() -> None:
    graph = residual()
    assert HalfProducts(())(graph) is graph
    kept = chosen(graph, given={**FASTEST, "weights": 5.0, "both": 5.0})
    assert HalfProducts(kept)(graph) is graph
