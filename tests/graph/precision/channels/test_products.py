"""Products: the axes of their channels, and what identifies a model by them."""

from __future__ import annotations

import pytest

from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.base import Layout
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.precision.channels.products import channel_axes, products_digest
from tilewright.graph.precision.prepared import prepared_graph
from tilewright.graph.types import TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import size_of

from ..models import network


def floats(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def product(op: Conv | Gemm | MatMul, *shapes: tuple[int, ...]) -> Graph:
    builder = GraphBuilder("product")
    names = [builder.input(f"x{n}", floats(*shape)) for n, shape in enumerate(shapes)]
    builder.add(op, *names, output="y")
    return builder.finish(("y",))


@pytest.mark.parametrize(
    ("op", "shapes", "read"),
    [
        (MatMul(), ((2, 3, 4), (4, 5)), {"x0": 2, "x1": 0}),
        (MatMul(), ((2, 3, 4), (2, 4, 5)), {"x0": 2, "x1": 1}),
        (Gemm(), ((3, 4), (4, 5)), {"x0": 1, "x1": 0}),
        (Gemm(trans_a=True), ((4, 3), (4, 5)), {"x0": 0, "x1": 0}),
        (Gemm(trans_b=True), ((3, 4), (5, 4)), {"x0": 1, "x1": 1}),
        (Conv(), ((1, 4, 8, 8), (6, 4, 3, 3)), {"x0": 1, "x1": 1}),
    ],
)
def test_channels_are_what_a_product_sums_over(
    op: Conv | Gemm | MatMul,
    shapes: tuple[tuple[int, ...], ...],
    read: dict[str, int],
) -> None:
    assert channel_axes(product(op, *shapes)) == read


def test_channels_may_be_last() -> None:
    layout: Layout = "NHWC"
    graph = product(Conv(layout=layout), (1, 8, 8, 4), (3, 3, 4, 6))
    assert channel_axes(graph) == {"x0": 3, "x1": 2}


def test_constants_have_no_channels_to_look_at() -> None:
    graph = prepared_graph(import_onnx(network()))
    assert channel_axes(graph) == {"x": 1, "flat": 1}


def test_products_of_other_types_are_none() -> None:
    builder = GraphBuilder("half")
    x = builder.input("x", TensorType("float16", (2, 2)))
    builder.add(MatMul(), x, x, output="y")
    assert channel_axes(builder.finish(("y",))) == {}


def test_an_operand_that_two_products_sum_over_differently_has_no_channels() -> None:
    builder = GraphBuilder("square")
    x = builder.input("x", floats(4, 4))
    builder.add(MatMul(), x, x, output="y")
    assert channel_axes(builder.finish(("y",))) == {}


def test_what_a_run_decides_is_no_number_of_channels() -> None:
    rows = size_of(Dim("rows", 1, 8))
    builder = GraphBuilder("scores")
    q = builder.input("q", TensorType("float32", (rows, 4)))
    k = builder.input("k", TensorType("float32", (4, rows)))
    builder.add(MatMul(), q, k, output="y")
    assert channel_axes(builder.finish(("y",))) == {"q": 1, "k": 0}


def digest(**changes: int | str) -> str:
    return products_digest(prepared_graph(import_onnx(network(**changes))))  # type: ignore[arg-type]


def test_a_digest_is_of_the_weights_and_not_of_the_sizes() -> None:
    assert digest() == digest(batch=3) == digest(batch="n")
    assert digest() != digest(seed=1)


def test_a_digest_is_of_the_names_of_values() -> None:
    model = network()
    model.graph.input[0].name = model.graph.node[0].input[0] = "image"
    assert products_digest(prepared_graph(import_onnx(model))) != digest()
