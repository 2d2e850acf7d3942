"""Values that are other values under another shape."""

from __future__ import annotations

import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.views import is_view, storage
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.movement import Identity, Reshape, Transpose
from tilewright.graph.types import TensorType


@pytest.mark.parametrize(
    ("op", "shape", "expected"),
    [
        (Reshape((6,)), (2, 3), True),
        (Identity(), (2, 3), True),
        (Transpose((0, 2, 3, 1)), (1, 5, 1, 1), True),
        (Transpose((0, 2, 3, 1)), (1, 1, 4, 4), True),
        (Transpose((0, 2, 3, 1)), (1, 2, 3, 4), False),
        (Transpose((1, 0)), (0, 3), True),
        (Relu(), (2, 3), False),
    ],
)
def test_what_keeps_the_order_of_elements_is_a_view(
    op: Operator, shape: tuple[int, ...], expected: bool
) -> None:
    builder = GraphBuilder("g")
    y = builder.add(op, builder.input("x", TensorType("float32", shape)))
    graph = builder.finish((y,))
    assert is_view(graph.nodes[0], graph.types) is expected


def test_a_view_of_a_view_has_the_bytes_of_the_first() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (2, 3)))
    a = builder.add(Relu(), x, output="a")
    b = builder.add(Reshape((6,)), a, output="b")
    c = builder.add(Reshape((3, 2)), b, output="c")
    roots = storage(builder.finish((c,)))
    assert roots == {"x": "x", "a": "a", "b": "a", "c": "a"}
