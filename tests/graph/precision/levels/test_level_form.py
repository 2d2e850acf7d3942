"""A model whose products multiply bytes: by the formula, and by what is stored between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Max, Min
from tilewright.graph.ops.convolution import Conv, IntegerConv
from tilewright.graph.ops.layer_norm import LayerNormalization
from tilewright.graph.ops.matmul import IntegerMatMul, MatMul
from tilewright.graph.ops.movement import Concat, Reshape
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.precision.layers import find_layers
from tilewright.graph.precision.levels.level_form import with_levels
from tilewright.graph.precision.levels.spelled_levels import LevelScale, weight_levels
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Splat, TensorType, owned

Ranges = Mapping[str, tuple[float, float]]


def normal(*shape: int, seed: int = 1) -> NDArray[np.float32]:
    """Random numbers, the same for the same shape in whichever order tests run."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


class Net(GraphBuilder):
    """A graph of layers with random weights, the same for the same layers."""

    def __init__(self, *shape: int) -> None:
        super().__init__("net")
        self.rng = np.random.default_rng(0)
        self.x = self.input("x", TensorType("float32", shape))

    def normal(self, *shape: int) -> NDArray[np.float32]:
        return self.rng.standard_normal(shape, np.float32)

    def conv(self, value: str, channels: int, output: str, size: int = 3) -> str:
        inner = self.types[value].shape[1]
        assert isinstance(inner, int)
        w = self.constant(f"{output}.w", owned(self.normal(channels, inner, size, size)))
        b = self.constant(f"{output}.b", owned(self.normal(channels)))
        return self.add(Conv(pads=(size // 2,) * 4), value, w, b, output=output)

    def linear(self, value: str, outputs: int, output: str) -> str:
        inner = self.types[value].shape[-1]
        assert isinstance(inner, int)
        w = self.constant(f"{output}.w", owned(self.normal(inner, outputs)))
        return self.add(MatMul(), value, w, output=output)


def narrowed(graph: Graph, ranges: Ranges) -> Graph:
    return with_levels(graph, find_layers(graph)[0], ranges)


def optimised(graph: Graph) -> Graph:
    return optimise(graph)[0]


def floats_stored(graph: Graph) -> list[str]:
    """What products read that are no bytes."""
    integer = (IntegerMatMul, IntegerConv)
    return [
        value
        for node in graph.nodes
        if isinstance(node.op, integer)
        for value in node.inputs
        if graph.types[value].is_float
    ]


def fake(x: NDArray[np.float32], low: float, high: float) -> NDArray[np.float32]:
    """What levels of a range stand for, by the definition."""
    low, high = np.float32(min(low, 0)), np.float32(max(high, 0))
    step = np.float32((high - low) / np.float32(255))
    zero = np.clip(np.rint(-low / step), 0, 255)
    levels = np.clip(np.rint(x * (np.float32(1) / step)) + zero, 0, 255)
    return ((levels - zero) * step).astype(np.float32)


def test_a_product_is_that_of_the_numbers_that_levels_stand_for() -> None:
    net = Net(4, 16)
    graph_of = net.linear(net.x, 8, "y")
    graph = net.finish((graph_of,))
    x = normal(4, 16)
    w = np.asarray(graph.constants["y.w"])
    scale = np.abs(w).max(axis=0) / np.float32(127)
    expected = fake(x, -2.0, 3.0) @ (np.rint(w / scale) * scale)
    made = narrowed(graph, {"x": (-2.0, 3.0)})
    assert np.allclose(evaluate(made, {"x": x})["y"], expected, atol=1e-5)
    products = optimised(made)
    assert any(isinstance(node.op, IntegerMatMul) for node in products.nodes)
    assert np.allclose(evaluate(products, {"x": x})["y"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("low", "high", "step", "zero"),
    [
        (0.0, 2.55, 0.01, 0),
        (-1.0, 1.55, 0.01, 100),
        (0.5, 2.55, 0.01, 0),
        (-2.55, -1, 0.01, 255),
        (-1.007, 1.543, 0.01, 101),  # of 100.7, the nearest
    ],
)
def test_zero_is_within_a_scale(low: float, high: float, step: float, zero: int) -> None:
    scale = LevelScale.of(low, high)
    assert (float(scale.step), scale.zero) == (pytest.approx(step), zero)
    assert scale.low <= 0 <= scale.high


def test_a_range_of_nothing_has_a_scale() -> None:
    assert LevelScale.of(0.0, 0.0) == LevelScale(np.float32(1), 0)


def test_weights_have_a_scale_for_each_output_and_none_where_all_are_0() -> None:
    w = np.array([[0, 0, 0], [1.27, -0.5, 0.3]], np.float32)
    levels, scales = weight_levels(w, 0)
    assert levels.tolist() == [[0, 0, 0], [127, -50, 30]]
    assert scales == pytest.approx(np.array([[1], [0.01]]))


def test_weights_may_have_one_scale_which_costs_those_of_small_outputs() -> None:
    w = np.array([[0.005, -0.002, 0], [1.27, -0.5, 0.3]], np.float32)
    levels, scales = weight_levels(w, None)
    assert levels.tolist() == [[0, 0, 0], [127, -50, 30]]
    assert scales == pytest.approx(np.array([[0.01]]))
    net = Net(3, 4)
    graph = net.finish((net.linear(net.x, 6, "y"),))
    (layer,), _ = find_layers(graph)
    shared = replace(layer, is_by_tensor=True)
    made = with_levels(graph, (shared,), {"x": (-3, 3)})
    assert made.types["y.w.scales"].shape == (1, 1)
    assert with_levels(graph, (layer,), {"x": (-3, 3)}).types["y.w.scales"].shape == (1, 6)
    assert any(isinstance(node.op, IntegerMatMul) for node in optimised(made).nodes)


def test_no_float_is_stored_between_convolutions_with_a_residual_sum_and_a_pool() -> None:
    net = Net(1, 4, 9, 9)
    a = net.add(Relu(), net.conv(net.x, 8, "conv_a"), output="a")
    b = net.add(Relu(), net.conv(a, 8, "conv_b"), output="b")
    both = net.add(Add(), net.conv(b, 8, "conv_c"), a, output="both")
    c = net.add(Relu(), both, output="c")
    pool = net.add(MaxPool((2, 2), (2, 2)), c, output="pool")
    net.conv(pool, 8, "y")
    graph = net.finish(("y",))
    ranges = {"x": (-3, 3), "a": (0, 9), "b": (0, 40), "c": (0, 300), "pool": (0, 300)}
    made = narrowed(graph, ranges)
    found = optimised(made)
    assert sum(isinstance(node.op, IntegerConv) for node in found.nodes) == 4
    assert not floats_stored(found)
    (moved,) = [node for node in found.nodes if isinstance(node.op, MaxPool)]
    assert found.types[moved.outputs[0]].dtype == "uint8"
    # the sum reads the bytes that the convolution reads, and nothing bounds what saturates anyhow
    assert not any(isinstance(node.op, Relu) for node in found.nodes)
    readers = {value for node in found.nodes for value in node.inputs}
    assert "a" not in readers
    x = {"x": normal(1, 4, 9, 9)}
    one, other = evaluate(made, x)["y"], evaluate(found, x)["y"]
    assert np.abs(one - other).max() <= 1e-2 * np.abs(one).max()


def test_of_two_convolutions_that_are_added_the_first_is_stored_as_levels() -> None:
    net = Net(1, 4, 6, 6)
    both = net.add(Add(), net.conv(net.x, 4, "b", 1), net.conv(net.x, 4, "a"), output="both")
    net.conv(net.add(Relu(), both, output="relu"), 4, "y")
    graph = net.finish(("y",))
    ranges = {"x": (-3, 3), "a": (-9, 9), "b": (-9, 9), "relu": (0, 18)}
    made = narrowed(graph, ranges)
    assert "b.step" in made.constants
    assert "a.step" not in made.constants
    assert "b.step" not in narrowed(graph, {"x": (-3, 3), "relu": (0, 18)}).constants


def test_a_sum_beside_products_of_rows_stays_one_of_floats() -> None:
    net = Net(3, 8)
    table = net.constant("gain", owned(normal(8)))
    normed = net.add(LayerNormalization(1), net.x, table, output="normed")
    net.add(Add(), net.linear(normed, 8, "product"), normed, output="y")
    made = narrowed(net.finish(("y",)), {"normed": (-3, 3)})
    (last,) = [node for node in made.nodes if node.outputs == ("y",)]
    assert "normed" in last.inputs


@pytest.mark.parametrize(("high", "is_gone"), [(6.0, True), (5.0, True), (6.5, False)])
def test_bounds_go_where_levels_saturate_within_them(high: float, is_gone: bool) -> None:
    net = Net(1, 4, 5, 5)
    low = net.constant("low", Splat(0.0, "float32", ()))
    most = net.constant("most", Splat(6.0, "float32", ()))
    value = net.add(Min(), net.add(Max(), net.conv(net.x, 4, "a"), low), most, output="six")
    net.conv(value, 4, "y")
    graph = net.finish(("y",))
    made = narrowed(graph, {"x": (-3, 3), "six": (0.0, high)})
    assert is_gone != any(isinstance(node.op, Min) for node in made.nodes)
    x = {"x": normal(1, 4, 5, 5)}
    (last,) = [node for node in made.nodes if node.outputs == ("y",)]
    read = last.inputs[0]
    found = evaluate(replace(made, outputs=("a", read)), x)
    assert found["a"].max() > 6 > 0 > found["a"].min()
    bounded = np.clip(found["a"].astype(np.float32), 0, 6)
    assert np.allclose(found[read], fake(bounded, 0.0, high), atol=1e-6)


@pytest.mark.parametrize("op", [Relu(), Max()])
def test_bounds_stay_where_levels_reach_beyond_them(op: Relu | Max) -> None:
    net = Net(1, 4, 5, 5)
    low = [] if isinstance(op, Relu) else [net.constant("low", Splat(0.0, "float32", ()))]
    net.conv(net.add(op, net.conv(net.x, 4, "a"), *low, output="bounded"), 4, "y")
    made = narrowed(net.finish(("y",)), {"x": (-3, 3), "bounded": (-9.0, 9.0)})
    (last,) = [node for node in made.nodes if node.outputs == ("y",)]
    found = evaluate(replace(made, outputs=("a", last.inputs[0])), {"x": normal(1, 4, 5, 5)})
    assert found["a"].min() < -1
    bounded = np.maximum(found["a"].astype(np.float32), 0)
    assert np.allclose(found[last.inputs[0]], fake(bounded, -9.0, 9.0), atol=1e-6)


def test_what_is_moved_together_has_one_scale() -> None:
    net = Net(1, 4, 5, 5)
    a, b = net.conv(net.x, 4, "a"), net.conv(net.x, 4, "b")
    joined = net.add(Concat(1), a, b, output="joined")
    net.linear(net.add(Reshape((1, 200)), joined, output="flat"), 3, "y")
    made = narrowed(
        net.finish(("y",)), {"x": (-3, 3), "a": (-1, 2), "b": (-7, 1), "joined": (-7, 2)}
    )
    steps = {float(np.asarray(made.constants[f"{v}.step"].value)) for v in ("a", "b", "joined")}  # type: ignore[union-attr]
    assert steps == {float(LevelScale.of(-7, 2).step)}
    found = optimised(made)
    assert not floats_stored(found)
    (node,) = [node for node in found.nodes if isinstance(node.op, Concat)]
    assert found.types[node.outputs[0]].dtype == "uint8"


def test_what_moves_numbers_to_an_output_of_the_model_moves_floats() -> None:
    net = Net(1, 4, 5, 5)
    flat = net.add(Reshape((1, 100)), net.conv(net.x, 4, "a"), output="flat")
    net.linear(flat, 3, "y")
    graph = net.finish(("flat", "y"))
    made = narrowed(graph, {"a": (-9, 9), "flat": (-9, 9), "x": (-3, 3)})
    found = evaluate(replace(made, outputs=("a", "flat")), {"x": normal(1, 4, 5, 5)})
    assert np.array_equal(found["a"].reshape(-1), found["flat"].reshape(-1))


def test_layers_that_share_weights_share_their_levels() -> None:
    net = Net(3, 8)
    w = net.constant("w", owned(normal(8, 8)))
    first = net.add(MatMul(), net.x, w, output="first")
    net.add(MatMul(), first, w, output="y")
    made = narrowed(net.finish(("y",)), {"x": (-3, 3), "first": (-9, 9)})
    assert [name for name in made.constants if name.startswith("w.levels")] == ["w.levels"]


def test_no_layer_leaves_a_graph_as_it_is() -> None:
    net = Net(3, 8)
    graph = net.finish((net.linear(net.x, 4, "y"),))
    assert with_levels(graph, (), {}) is graph


def test_an_output_of_the_model_stays_float() -> None:
    net = Net(3, 8)
    a = net.linear(net.x, 8, "a")
    net.linear(a, 4, "y")
    made = narrowed(net.finish(("a", "y")), {"x": (-3, 3), "a": (-9, 9)})
    x = {"x": normal(3, 8)}
    got = evaluate(optimised(made), x)
    assert len(np.unique(got["a"])) > 20
    assert made.types["a"].dtype == "float32"
