"""WidenedProducts: products of bytes as those of 16 bits, with the same sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.convolution import IntegerConv
from tilewright.graph.ops.matmul import IntegerMatMul, MatMul
from tilewright.graph.passes.pipeline import GraphPass, PassReport, left_out, run_by
from tilewright.graph.passes.widened_products import WidenedProducts
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType, owned
from tilewright.tir.target.target import Target

Lines = Callable[[Graph], list[str]]


def products() -> Graph:
    """One data, two products, and a convolution, at the ends of the ranges."""
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("uint8", (4, 6)))
    image = builder.input("image", TensorType("uint8", (1, 2, 5, 5)))
    for n, number in enumerate((127, -128)):
        w = builder.constant(f"w{n}", owned(np.full((6, 3), number, np.int8)))
        builder.add(IntegerMatMul(), x, w, output=f"y{n}")
    filters = builder.constant("filters", owned(np.full((3, 2, 3, 3), 127, np.int8)))
    builder.add(IntegerConv(pads=(1, 1, 1, 1), zero=255), image, filters, output="z")
    return builder.finish(("y0", "y1", "z"))


def test_operands_are_widened_once_and_sums_stay(lines: Lines) -> None:
    graph = products()
    after = WidenedProducts()(graph)
    assert lines(after) == [
        "x.wide = Cast[to='int16'](x)",
        "w0.wide = Cast[to='int16'](w0)",
        "y0 = IntegerMatMul(x.wide, w0.wide)",
        "w1.wide = Cast[to='int16'](w1)",
        "y1 = IntegerMatMul(x.wide, w1.wide)",
        "image.wide = Cast[to='int16'](image)",
        "filters.wide = Cast[to='int16'](filters)",
        "z = IntegerConv[pads=(1, 1, 1, 1), zero=255](image.wide, filters.wide)",
    ]
    assert WidenedProducts()(after) is after
    given = {name: np.full(graph.types[name].shape, 255, np.uint8) for name in graph.inputs}
    found = evaluate(after, given, dtype=None)
    for name, wanted in evaluate(graph, given, dtype=None).items():
        np.testing.assert_array_equal(found[name], wanted)
    assert found["y0"][0, 0] == 6 * 255 * 127  # which pairs in 16 bits would not hold
    assert found["z"][0, 0, 0, 0] == 18 * 255 * 127


def test_other_products_stay() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (4, 6)))
    w = builder.constant("w", owned(np.ones((6, 3), np.float32)))
    graph = builder.finish((builder.add(MatMul(), x, w, output="y"),))
    assert WidenedProducts()(graph) is graph


def test_a_pass_runs_where_it_pays() -> None:
    passes: tuple[GraphPass, ...] = (WidenedProducts(),)
    assert run_by(passes, Target.parse("c:avx2")) == passes
    for name, where in (
        ("c:avx512+vnni", "pays on avx2"),
        ("c:neon", "pays on avx2"),
        ("python", "pays on avx2"),
        ("c:avx2+vnni", "does not pay on avx2+vnni"),
    ):
        target = Target.parse(name)
        assert run_by(passes, target) == ()
        assert left_out(passes, target) == (
            PassReport(
                "WidenedProducts",
                "left out",
                problem=f"it {where}, and the target is '{target}'",
            ),
        )
