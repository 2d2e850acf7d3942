"""graph/kernels/network_order.py: TopK by networks gives what TopK means, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.kernels.fused_kernel import fused_kernel_of
from tilewright.graph.kernels.groups import FusionGroup
from tilewright.graph.kernels.network_order import NetworkTopK, as_network, rounds
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.types import Array, TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.sizes import AnySize, size_of
from tilewright.tir.te import te

RNG = np.random.default_rng(0)
NAN, INF = np.nan, np.inf


def tied(*shape: int, kind: str = "float32") -> Array:
    """Few different numbers, of floats zeros of both signs, infinities and NaN among them."""
    if not kind.startswith(("float", "bfloat")):
        info = np.iinfo(kind)
        ends = np.array([info.min, info.max, 0, 1, info.max - 1], kind)
        return RNG.choice(ends, shape)
    return RNG.choice(np.array([0.0, -0.0, 1, -1, INF, -INF, NAN, -NAN, 2.5], kind), shape)


def drawn(*shape: int, kind: str = "float32") -> Array:
    """Numbers from the whole range of a type."""
    if kind.startswith("float"):
        return RNG.standard_normal(shape).astype(kind)
    info = np.iinfo(kind)
    return RNG.integers(info.min, info.max, shape, kind, endpoint=True)


INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
KINDS = ["float16", "float32", "float64", *INTEGERS]
CASES = [
    *((tied(3, 90, kind=kind), 1, 90) for kind in KINDS),
    *((drawn(2, 70, kind=kind), 1, 33) for kind in KINDS),
    (drawn(90), 0, 90),
    (tied(4, 50, 3), 1, 50),
    (drawn(50, 3, 2, kind="int64"), 0, 20),
    (drawn(2, 1), 1, 1),
    (drawn(2, 2), 1, 2),
    (drawn(2, 8), 1, 8),
    (drawn(5, 17), 1, 17),
    (tied(2, 1500), 1, 40),
    (drawn(2, 1500, kind="int32"), 1, 40),
    (np.full((2, 1500), -INF, np.float32), 1, 40),
    (np.full((2, 1500), NAN, np.float32), 1, 300),
    (tied(1, 3000, kind="int8"), 1, 20),
]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("x", "axis", "count"), CASES)
def test_values_and_places_are_those_of_the_operator(
    x: Array, axis: int, count: int, largest: bool
) -> None:
    op = NetworkTopK(axis, count, largest)
    kind = "float32" if x.dtype == np.float16 else x.dtype.name
    held = te.placeholder(x.shape, kind, name="x")
    func = te.func(held, *op.express(held, name="top"), name="f")
    found = evaluate(func, {"x": x.astype(kind)}).values()
    for made, expected in zip(found, op.reference(x), strict=True):
        np.testing.assert_array_equal(made.astype(expected.dtype), expected)
        if expected.dtype.kind == "f":
            at = expected == 0
            np.testing.assert_array_equal(np.signbit(made[at]), np.signbit(expected[at]))


def test_few_of_many_are_looked_for_in_rounds() -> None:
    assert rounds(1000, 1000) == ()
    assert rounds(1500, 40)
    size, count = 8400, 100
    for blocks in rounds(size, count):
        assert blocks & (blocks - 1) == 0
        assert count < blocks < size
        size = count * -(-size // blocks)


def test_a_number_of_a_block_fits_below_a_place() -> None:
    """A place among 2**20 leaves ten bits."""
    assert max(rounds(1 << 20, 500)) <= 1 << 10


def graph_of(x: TensorType, op: TopK) -> Graph:
    builder = GraphBuilder("top")
    builder.input("x", x)
    builder.add_node(GraphNode(op, ("x",), ("values", "places")))
    return builder.finish(("values", "places"))


@pytest.mark.parametrize(
    ("shape", "op", "taken"),
    [
        ((5, 90), TopK(1, 90), True),
        ((4, 90), TopK(1, 90), False),
        ((1 << 15, 1), TopK(1, 1), True),
        ((9, 90), TopK(1, 0), False),
        ((0, 90), TopK(1, 5), False),
        ((1, (1 << 20) + 1), TopK(1, 5), False),
        ((size_of(Dim("n", low=1, high=8)), 90), TopK(1, 5), False),
        ((9, 90), NetworkTopK(1, 5), False),
    ],
)
def test_which_kernels_become_networks(shape: tuple[AnySize, ...], op: TopK, taken: bool) -> None:
    graph = graph_of(TensorType("float32", shape), op)
    fused, _ = fused_kernel_of(graph, FusionGroup(graph.nodes))
    made = as_network(fused)
    assert (made is not None) == taken
    if made is not None:
        assert made.steps[0].op == NetworkTopK(op.axis, op.count, op.largest)
        assert as_network(made) is None


@pytest.mark.needs_cc
@pytest.mark.isa
def test_a_plan_takes_the_network_where_it_is_cheaper_and_it_is_right() -> None:
    builder = GraphBuilder("top")
    feeds, outputs = {}, []
    cases = [(tied(300, 3, kind="int64"), 300), (drawn(2, 2000), 100)]
    for n, (array, count) in enumerate(cases):
        x = builder.input(f"x{n}", TensorType(array.dtype.name, array.shape))
        builder.add_node(GraphNode(TopK(n, count, n == 1), (x,), (f"v{n}", f"p{n}")))
        outputs += [f"v{n}", f"p{n}"]
        feeds[x] = array
    engine = compile(builder.finish(tuple(outputs)), cache=False)
    assert str(engine.explain()).count("by a sorting network") >= len(cases)
    found = engine.run(feeds)
    for n, (array, count) in enumerate(cases):
        values, places = TopK(n, count, n == 1).reference(array)
        np.testing.assert_array_equal(found[f"v{n}"], values, strict=True)
        np.testing.assert_array_equal(found[f"p{n}"], places, strict=True)
