"""Patterns of nodes: names stand for one value, sums and products commute."""

from __future__ import annotations

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.activation import Sigmoid
from tilewright.graph.ops.arithmetic import Add, Mul, Sub
from tilewright.graph.passes.pattern import Made, Number, Pattern, PatternMatch, Value, matched
from tilewright.graph.types import Splat, TensorType

X = Value("x")


def found(pattern: Pattern, value: str) -> PatternMatch | None:
    b = GraphBuilder("net")
    x, z = (b.input(name, TensorType("float32", (4,))) for name in "xz")
    two = b.constant("two", Splat(2.0, "float32", ()))
    gate = b.add(Sigmoid(), x, output="gate")
    b.add(Mul(), gate, x, output="swish")
    b.add(Mul(), gate, z, output="gated")
    b.add(Sub(), two, x, output="difference")
    b.add(Add(), two, x, output="sum")
    graph = b.finish(("swish", "gated", "difference", "sum"))
    return matched(graph, graph.producers, value, pattern)


def test_a_name_stands_for_one_value() -> None:
    swish = Made(Mul, (X, Made(Sigmoid, (X,), "gate")))
    one = found(swish, "swish")
    assert one is not None
    assert one.values == {"x": "x"}
    assert one.nodes["gate"].outputs == ("gate",)
    assert one.inside == {"gate", "swish"}
    assert found(swish, "gated") is None


def test_products_and_sums_stand_in_any_order_differences_do_not() -> None:
    two = Number("two")
    for order in ((X, two), (two, X)):
        one = found(Made(Add, order), "sum")
        assert one is not None
        assert one.numbers == {"two": 2.0}
    assert found(Made(Sub, (two, X)), "difference") is not None
    assert found(Made(Sub, (X, two)), "difference") is None


def test_what_is_made_otherwise_is_not_found() -> None:
    assert found(Made(Mul, (X, X)), "sum") is None
    assert found(Made(Mul, (X, X)), "x") is None
    assert found(Made(Add, (X,)), "sum") is None
    assert found(Number("n"), "sum") is None
