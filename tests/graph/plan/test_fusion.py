"""Fusion: what joins a group, what does not and why, and that groups never wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.kernels.groups import FusionGroup
from tilewright.graph.ops.activation import LeakyRelu, Relu, Sigmoid
from tilewright.graph.ops.arithmetic import Add, Div, Mul, Sum
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast, Erf
from tilewright.graph.ops.layer_norm import LayerNormalization
from tilewright.graph.ops.logic import Less
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.plan.fusion import fuse, ordered
from tilewright.graph.types import Splat, TensorType
from tilewright.tir.errors import InternalError

X = TensorType("float32", (1, 4, 4, 8))
CONV = Conv(layout="NHWC")
NUMBERS = {"one": 1.0, "half": 0.5, "root": 2**0.5}


class Net(GraphBuilder):
    """A builder with 1x1 convolutions of 8 channels."""

    def __init__(self) -> None:
        super().__init__("net")
        self.x = self.input("x", X)
        self.w = self.constant("w", Splat(0.5, "float32", (1, 1, 8, 8)))

    def conv(self, value: str, name: str) -> str:
        return self.add(CONV, value, self.w, output=name)


def titles(graph: Graph) -> list[str]:
    return [group.title for group in fuse(graph).groups]


def misses(graph: Graph) -> list[str]:
    return [str(miss) for miss in fuse(graph).misses]


def test_a_chain_behind_an_anchor_is_one_group() -> None:
    net = Net()
    a = net.add(Add(), net.conv(net.x, "a"), net.x)
    graph = net.finish((net.add(Relu(), a, output="y"),))
    assert titles(graph) == ["Conv+Add+Relu"]
    assert misses(graph) == []


def test_elementwise_operators_alone_are_one_group_of_any_length() -> None:
    net = Net()
    value = net.x
    for _ in range(10):
        value = net.add(Relu(), net.add(Add(), value, net.x))
    assert titles(net.finish((value,))) == ["+".join(["Add", "Relu"] * 10)]


def test_a_sum_of_two_convolutions_joins_the_one_computed_last() -> None:
    net = Net()
    a, b = net.conv(net.x, "a"), net.conv(net.x, "b")
    graph = net.finish((net.add(Sum(), b, a, output="y"),))
    assert [group.outputs for group in fuse(graph).groups] == [("a",), ("y",)]
    assert titles(graph) == ["Conv", "Conv+Sum"]
    assert misses(graph) == [
        "not fused: node 'y' (Sum) behind node 'a' (Conv): it runs in the kernel of node 'b' "
        "(Conv), "
        "and a kernel has one anchor; to fuse: combine the inputs of node 'b' (Conv) and of "
        "node 'a' (Conv) in one operator"
    ]


def swish(net: Net, value: str, output: str = "") -> str:
    return net.add(Mul(), value, net.add(Sigmoid(), value), output=output)


def test_a_value_that_only_the_group_reads_is_not_stored() -> None:
    net = Net()
    graph = net.finish((swish(net, net.conv(net.x, "a"), "y"),))
    assert titles(graph) == ["Conv+Sigmoid+Mul"]
    assert misses(graph) == []


def test_gelu_in_parts_is_one_kernel_behind_its_product() -> None:
    net = Net()
    one, half, root = (net.constant(n, Splat(v, "float32", ())) for n, v in NUMBERS.items())
    biased = net.add(Add(), net.conv(net.x, "a"), net.constant("b", Splat(2.0, "float32", (8,))))
    tail = net.add(Add(), net.add(Erf(), net.add(Div(), biased, root)), one)
    graph = net.finish((net.add(Mul(), net.add(Mul(), biased, tail), half, output="y"),))
    assert titles(graph) == ["Conv+Add+Div+Erf+Add+Mul+Mul"]
    assert misses(graph) == []


def test_an_anchor_whose_value_is_read_before_the_last_operator_joins() -> None:
    net = Net()
    one, half, _ = (net.constant(n, Splat(v, "float32", ())) for n, v in NUMBERS.items())
    a = net.conv(net.x, "a")
    left, right = net.add(Mul(), a, half), net.add(Add(), net.add(Sigmoid(), a), one)
    graph = net.finish((net.add(Mul(), left, right, output="y"),))
    assert titles(graph) == ["Conv+Mul+Sigmoid+Add+Mul"]
    assert misses(graph) == []


def test_elementwise_groups_that_meet_are_one_behind_an_anchor() -> None:
    net = Net()
    a, b = net.add(Sigmoid(), net.x), net.conv(net.x, "b")
    z = net.add(Relu(), net.x, output="z")
    graph = net.finish((net.add(Sum(), a, b, z, output="y"),))
    assert titles(graph) == ["Conv+Sigmoid+Relu+Sum"]


def test_what_an_anchor_reads_is_stored_though_the_rest_reads_it_too() -> None:
    net = Net()
    a = net.add(Relu(), net.x, output="a")
    graph = net.finish((net.add(Add(), net.conv(a, "b"), a, output="y"),))
    assert titles(graph) == ["Relu", "Conv+Add"]


def test_an_expression_stands_at_most_four_times_in_another() -> None:
    net = Net()
    value = swish(net, swish(net, swish(net, net.conv(net.x, "a"))))
    graph = net.finish((value,))
    assert titles(graph) == ["Conv+Sigmoid+Mul+Sigmoid+Mul", "Sigmoid+Mul"]
    assert [miss.condition for miss in fuse(graph).misses] == [
        "'mul_1' is also read by node 'mul_2' (Mul) and must be stored"
    ]


def test_a_value_that_another_node_reads_is_stored() -> None:
    net = Net()
    a = net.conv(net.x, "a")
    b = net.add(Relu(), a, output="b")
    graph = net.finish((b, net.add(MaxPool((2, 2), layout="NHWC"), a, output="p")))
    assert titles(graph) == ["Conv", "Relu", "MaxPool"]
    assert misses(graph) == [
        "not fused: node 'b' (Relu) behind node 'a' (Conv): 'a' is also read by node 'p' "
        "(MaxPool) and "
        "must be stored; to fuse: let node 'p' (MaxPool) read another value"
    ]


def test_an_output_of_the_model_is_stored() -> None:
    net = Net()
    a = net.conv(net.x, "a")
    graph = net.finish(("a", net.add(Relu(), a, output="y")))
    assert titles(graph) == ["Conv", "Relu"]
    assert misses(graph) == [
        "not fused: node 'y' (Relu) behind node 'a' (Conv): 'a' is an output of the model and "
        "must be "
        "stored; to fuse: drop 'a' from the outputs"
    ]


def test_a_view_stands_between() -> None:
    net = Net()
    a = net.add(Reshape((16, 8)), net.conv(net.x, "a"), output="flat")
    graph = net.finish((net.add(Relu(), a, output="y"),))
    assert titles(graph) == ["Conv", "Relu"]
    assert misses(graph) == [
        "not fused: node 'y' (Relu) behind node 'flat' (Reshape): the value is read under another "
        "shape; to fuse: apply Relu before Reshape"
    ]


def test_a_result_that_is_broadcast_larger_is_another_kernel() -> None:
    net = Net()
    z = net.input("z", TensorType("float32", (3, 4, 4, 8)))
    graph = net.finish((net.add(Add(), net.conv(net.x, "a"), z, output="y"),))
    assert titles(graph) == ["Conv", "Add"]
    assert misses(graph) == [
        "not fused: node 'y' (Add) behind node 'a' (Conv): the result is float32[3, 4, 4, 8], "
        "larger "
        "than float32[1, 4, 4, 8]; to fuse: broadcast behind Add"
    ]


def test_a_group_has_a_limit() -> None:
    net = Net()
    a = net.add(Relu(), net.conv(net.x, "a"), output="b")
    graph = net.finish((net.add(Relu(), a, output="y"),))
    fusion = fuse(graph, most_nodes=2)
    assert [group.title for group in fusion.groups] == ["Conv+Relu", "Relu"]
    assert [str(miss) for miss in fusion.misses] == [
        "not fused: node 'y' (Relu) behind node 'b' (Relu): a group has at most 2 nodes; to fuse: "
        "raise the limit"
    ]


def test_what_stands_before_an_anchor_is_told() -> None:
    net = Net()
    a = net.add(Relu(), net.x, output="a")
    graph = net.finish((net.conv(a, "y"),))
    assert titles(graph) == ["Relu", "Conv"]
    assert misses(graph) == [
        "not fused: node 'y' (Conv) behind node 'a' (Relu): Conv reads each element more than "
        "once or "
        "elsewhere for its float32[1, 4, 4, 8], and what stands before an anchor is not computed "
        "inside it; to fuse: move Relu behind what computes 'x'"
    ]


def test_of_two_operands_the_first_one_is_what_an_operator_is_moved_behind() -> None:
    net = Net()
    z = net.input("z", X)
    graph = net.finish((net.conv(net.add(Add(), net.x, z, output="a"), "y"),))
    (miss,) = misses(graph)
    assert miss.endswith("to fuse: move Add behind what computes 'x'")


def test_what_a_normalisation_reads_is_computed_inside_it() -> None:
    net = Net()
    scale = net.constant("scale", Splat(2.0, "float32", (8,)))
    z = net.input("z", X)
    a = net.add(Add(), net.x, z, output="a")
    norm = net.add(LayerNormalization(3), a, scale, scale)
    graph = net.finish((net.add(Relu(), norm, output="y"),))
    assert titles(graph) == ["Add+LayerNormalization+Relu"]
    assert misses(graph) == []


def test_what_it_reads_comes_first_though_the_rest_reads_it_too() -> None:
    net = Net()
    a = net.add(Relu(), net.x, output="a")
    soft = net.add(Softmax((3,)), net.add(Sigmoid(), net.x, output="b"), output="c")
    graph = net.finish((net.add(Sum(), soft, a, output="y"),))
    assert titles(graph) == ["Sigmoid+Softmax+Relu+Sum"]


def test_a_sum_that_others_read_is_stored_before_its_normalisation() -> None:
    net = Net()
    a = net.add(Relu(), net.x, output="a")
    soft = net.add(Softmax((3,)), a, output="b")
    graph = net.finish((net.add(Add(), soft, a, output="y"),))
    assert titles(graph) == ["Relu", "Softmax+Add"]
    assert misses(graph) == [
        "not fused: node 'b' (Softmax) behind node 'a' (Relu): 'a' is also read by node 'y' (Add) "
        "and must be stored; to fuse: let node 'y' (Add) read another value"
    ]


def test_what_runs_behind_an_anchor_stays_there() -> None:
    net = Net()
    a = net.add(Relu(), net.conv(net.x, "a"))
    graph = net.finish((net.add(Softmax((3,)), a, output="y"),))
    assert titles(graph) == ["Conv+Relu", "Softmax"]


def test_groups_stand_behind_what_they_read() -> None:
    net = Net()
    graph = net.finish((net.add(Relu(), net.conv(net.conv(net.x, "a"), "b"), output="y"),))
    groups = fuse(graph).groups
    assert ordered(graph, tuple(reversed(groups))) == groups


def test_groups_that_wait_for_each_other_are_refused() -> None:
    net = Net()
    a = net.conv(net.x, "a")
    b = net.conv(a, "b")
    graph = net.finish((net.add(Sum(), a, b, output="y"),))
    first, second, third = graph.nodes
    with pytest.raises(InternalError) as caught:
        ordered(graph, (FusionGroup((first, third)), FusionGroup((second,))))
    assert str(caught.value) == (
        "InternalError: fusion: the groups of y, b wait for each other; expected an order. "
        "[fusion-cycle]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_are_grouped_in_order_and_each_node_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = Net()
    values = [net.x]
    for n in range(30):
        pick = rng.integers(0, len(values), 2)
        if rng.random() < 0.2:
            values.append(swish(net, values[pick[0]]))
        elif rng.random() < 0.3:
            values.append(net.conv(values[pick[0]], f"c{n}"))
        elif rng.random() < 0.5:
            values.append(net.add(Add(), *(values[p] for p in pick), output=f"c{n}"))
        else:
            values.append(net.add(Relu(), values[pick[0]], output=f"c{n}"))
    graph = net.finish((values[-1],))
    fusion = fuse(graph)
    known = {"x", "w"}
    for group in fusion.groups:
        assert known.issuperset(group.inputs)
        known.update(group.outputs)
    grouped = [node for group in fusion.groups for node in group.nodes]
    assert sorted(n.outputs for n in grouped) == sorted(n.outputs for n in graph.nodes)


def row(op: Operator, count: int) -> Graph:
    net = Net()
    value = net.x
    for _ in range(count):
        value = net.add(op, value)
    return net.finish({"y": value})


def sizes(graph: Graph) -> list[int]:
    return [len(group.nodes) for group in fuse(graph).groups]


def test_a_group_has_as_many_nodes_as_its_expression_may_have_levels() -> None:
    assert sizes(row(Erf(), 20)) == [8, 8, 4]
    assert misses(row(Erf(), 9)) == [
        "not fused: node 'y' (Erf) behind node 'erf_7' (Erf): the expression would be 72 levels "
        "high, and a kernel takes 64; to fuse: let Erf read less"
    ]


def test_operators_that_read_their_input_often_are_few_in_a_group() -> None:
    assert sizes(row(LeakyRelu(), 9)) == [4, 4, 1]
    assert misses(row(LeakyRelu(), 5)) == [
        "not fused: node 'y' (LeakyRelu) behind node 'leakyrelu_3' (LeakyRelu): a part of "
        "'leakyrelu_3' would stand 81 times in one expression; to fuse: let LeakyRelu read it once"
    ]


def test_a_chain_of_thousands_is_cut_into_groups() -> None:
    assert sizes(row(Sigmoid(), 5000)) == [5] * 1000


def test_a_node_with_several_outputs_is_a_group_that_stores_them_all() -> None:
    net = Net()
    before = net.add(Relu(), net.x, output="before")
    net.add_node(GraphNode(TopK(1, 2), (before,), ("values", "places")))
    after = net.add(Relu(), "values", output="after")
    graph = net.finish((after,))
    assert titles(graph) == ["Relu", "TopK", "Relu"]
    assert [group.outputs for group in fuse(graph).groups] == [
        ("before",),
        ("values", "places"),
        ("after",),
    ]
    assert misses(graph)[1] == (
        "not fused: node 'after' (Relu) behind node 'values' (TopK): TopK computes 2 values and "
        "stores them all; to fuse: let Relu read what one with a single output computes"
    )


def test_a_group_that_reads_the_second_output_stands_behind_the_first() -> None:
    net = Net()
    net.add_node(GraphNode(TopK(1, 2), (net.x,), ("values", "places")))
    late = net.add(Cast("float32"), "places", output="late")
    graph = net.finish((late,))
    top, cast = fuse(graph).groups
    assert ordered(graph, (cast, top)) == (top, cast)


def widened(net: Net, value: str, output: str = "") -> str:
    """Numbers of 8 bits as floats again."""
    wide = net.add(Cast("float32"), net.add(Cast("uint8"), value))
    return net.add(
        Mul(), wide, net.constant(net.fresh("scale"), Splat(0.5, "float32", ())), output=output
    )


def test_a_group_stores_bytes_where_another_one_alone_makes_floats_of_them() -> None:
    net = Net()
    a, b = widened(net, net.conv(net.x, "a")), widened(net, net.conv(net.x, "b"))
    graph = net.finish((net.add(Add(), a, b, output="y"),))
    assert titles(graph) == ["Conv+Cast", "Conv+Cast+Mul+Cast+Cast+Mul+Add"]
    groups = fuse(graph).groups
    assert [str(graph.types[group.outputs[0]]) for group in groups] == [
        "uint8[1, 4, 4, 8]",
        "float32[1, 4, 4, 8]",
    ]


@pytest.mark.parametrize(
    "case", ["an output", "two readers", "a convolution", "another shape", "a larger result"]
)
def test_a_group_stores_floats_where_others_want_them(case: str) -> None:
    net = Net()
    a, outputs = widened(net, net.conv(net.x, "a"), "wide"), ["y"]
    if case == "an output":
        outputs.append(a)
    if case == "two readers":
        outputs.append(net.add(Add(), net.conv(net.x, "c"), a, output="z"))
    if case == "a convolution":
        net.conv(a, "y")
    elif case == "another shape":
        net.add(Add(), net.add(Reshape((4, 4, 8)), a), net.x, output="y")
    elif case == "a larger result":
        two = net.input("two", TensorType("float32", (2, 4, 4, 8)))
        net.add(Add(), a, two, output="y")
    else:
        net.add(Add(), a, net.conv(net.x, "b"), output="y")
    assert "Conv+Cast+Cast+Mul" in titles(net.finish(tuple(outputs)))


def test_a_wide_tail_that_is_all_of_a_group_stays() -> None:
    net = Net()
    levels = net.input("levels", TensorType("uint8", (1, 4, 4, 8)))
    wide = net.add(Cast("float32"), levels)
    graph = net.finish((net.add(Add(), net.conv(net.x, "b"), wide, output="y"),))
    assert titles(graph) == ["Conv+Cast+Add"]


def test_truth_values_become_floats_where_they_are_computed() -> None:
    net = Net()
    zero = net.constant("zero", Splat(0.0, "float32", ()))
    on = net.add(Cast("float32"), net.add(Less(), net.conv(net.x, "a"), zero))
    graph = net.finish((net.add(Add(), on, net.conv(net.x, "b"), output="y"),))
    assert titles(graph) == ["Conv+Less+Cast", "Conv+Add"]
