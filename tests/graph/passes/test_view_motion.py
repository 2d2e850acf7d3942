"""The frame of ChannelsLast and ReshapeMotion, under a pass that lets every Transpose wait."""

from __future__ import annotations

import numpy as np

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.passes.layout import PermutedView
from tilewright.graph.passes.view_motion import ViewMotion
from tilewright.graph.types import Splat, TensorType


class Waiting(ViewMotion[PermutedView]):
    """Transposes of what was not transposed wait; all other operators are fixed."""

    def take(self, node: GraphNode) -> None:
        match node.op:
            case Transpose(permutation):
                self.views[node.outputs[0]] = PermutedView(node.inputs[0], permutation)
            case _:
                self.fixed(node)

    def itself(self, value: str) -> PermutedView:
        return PermutedView(value, tuple(range(self.graph.types[value].rank)))


def builder() -> GraphBuilder:
    found = GraphBuilder("net")
    found.input("x", TensorType("float32", (2, 3)))
    return found


def lines(graph: Graph) -> list[str]:
    return [line.strip() for line in str(graph).splitlines()[2:]]


def test_a_view_that_nobody_reads_is_not_made() -> None:
    net = builder()
    net.add(Transpose((1, 0)), "x", output="t")
    net.add(Relu(), "x", output="y")
    assert lines(Waiting(net.finish(("y",))).copy()) == [
        "y = Relu(x)  # float32[2, 3]",
        "return y",
    ]


def test_a_view_is_made_once_where_it_is_first_read_and_keeps_its_name() -> None:
    net = builder()
    net.add(Transpose((1, 0)), "x", output="one")
    net.add(Transpose((1, 0)), "x", output="two")
    net.add(Relu(), "x", output="z")
    net.add(Add(), "two", "one", output="y")
    assert lines(Waiting(net.finish(("y", "z"))).copy()) == [
        "z = Relu(x)  # float32[2, 3]",
        "two = Transpose[permutation=(1, 0)](x)  # float32[3, 2]",
        "y = Add(two, two)  # float32[3, 2]",
        "return y, z",
    ]


def test_constants_are_seen_here_and_now_without_a_copy_and_a_splat_stays_one() -> None:
    net = builder()
    weights = net.constant("weights", np.arange(6, dtype=np.float32).reshape(2, 3))
    ones = net.constant("ones", Splat(1.0, "float32", (2, 3)))
    net.add(Transpose((1, 0)), weights, output="a")
    net.add(Transpose((1, 0)), ones, output="b")
    net.add(Add(), "a", "b", output="y")
    result = Waiting(net.finish(("y",))).copy()
    assert lines(result) == ["y = Add(a, splat(1))  # float32[3, 2]", "return y"]
    assert result.constants["b"] == Splat(1.0, "float32", (3, 2))
    view = result.constants["a"]
    assert isinstance(view, np.ndarray)
    assert np.shares_memory(view, net.constants["weights"])
    assert not view.flags.writeable


def test_what_moves_nothing_is_the_same_graph() -> None:
    net = builder()
    net.add(Relu(), "x", output="y")
    graph = net.finish(("y",))
    assert Waiting(graph).copy() is graph
