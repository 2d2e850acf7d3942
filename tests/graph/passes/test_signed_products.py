"""SignedProducts: products of bytes of one sign, with the same sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.convolution import IntegerConv
from tilewright.graph.ops.matmul import IntegerMatMul
from tilewright.graph.passes.pipeline import GraphPass, left_out, run_by
from tilewright.graph.passes.signed_products import SignedProducts
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType, owned
from tilewright.tir.target.target import Target

Lines = Callable[[Graph], list[str]]


def products(number: int, zero: int = 0) -> Graph:
    """Two products of one matrix, and a convolution, whose weights are all one number."""
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("uint8", (4, 6)))
    image = builder.input("image", TensorType("uint8", (1, 2, 5, 5)))
    for n in range(2):
        w = builder.constant(f"w{n}", owned(np.full((6, 3), number, np.int8)))
        builder.add(IntegerMatMul(), x, w, output=f"y{n}")
    filters = builder.constant("filters", owned(np.full((3, 2, 3, 3), number, np.int8)))
    builder.add(IntegerConv(pads=(1, 1, 1, 1), zero=zero), image, filters, output="z")
    return builder.finish(("y0", "y1", "z"))


@pytest.mark.parametrize("data", [0, 127, 128, 255])
@pytest.mark.parametrize("number", [-128, 127])
@pytest.mark.parametrize("zero", [0, 255])
def test_sums_are_those_of_the_unsigned_bytes(data: int, number: int, zero: int) -> None:
    graph = products(number, zero)
    after = SignedProducts()(graph)
    assert all(
        [after.types[value].dtype for value in node.inputs] == ["int8", "int8"]
        for node in after.nodes
        if isinstance(node.op, IntegerMatMul | IntegerConv)
    )
    given = {name: np.full(graph.types[name].shape, data, np.uint8) for name in graph.inputs}
    found = evaluate(after, given, dtype=None)
    for name, wanted in evaluate(graph, given, dtype=None).items():
        np.testing.assert_array_equal(found[name], wanted)
    assert found["y0"][0, 0] == 6 * data * number
    assert found["z"][0, 0, 0, 0] == (8 * data + 10 * zero) * number


def test_data_are_converted_once(lines: Lines) -> None:
    graph = products(3)
    after = SignedProducts()(graph)
    text = lines(after)
    assert sum("Cast[to='int8']" in line for line in text) == 2
    assert text[2] == "y0.cast_1 = Cast[to='int8'](y0.add)"
    assert "y1.integermatmul = IntegerMatMul(y0.cast_1, w1)" in text
    assert any("IntegerConv[pads=(1, 1, 1, 1), zero=-128](" in line for line in text)
    assert SignedProducts()(after) is after


def test_the_pass_runs_where_bytes_of_both_signs_are_not_multiplied() -> None:
    passes: tuple[GraphPass, ...] = (SignedProducts(),)
    assert run_by(passes, Target.parse("c:neon+dotprod")) == passes
    for name, where in (
        ("c:neon+dotprod+i8mm", "does not pay on neon+i8mm"),
        ("c:neon", "pays on neon+dotprod"),
        ("c:avx512+vnni", "pays on neon+dotprod"),
    ):
        target = Target.parse(name)
        assert run_by(passes, target) == ()
        (report,) = left_out(passes, target)
        assert report.problem == f"it {where}, and the target is '{target}'"
