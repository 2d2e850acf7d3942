"""The graph as a value: its text, its checker, its builder."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode, make_graph, rebuilt
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.movement import Concat, Identity
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.ops.registry import OPERATORS
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.types import Splat, TensorType
from tilewright.tir.errors import InternalError

X = TensorType("float32", (1, 4, 8, 8))


def small() -> Graph:
    """x -> Conv -> Relu, and the same once more, concatenated."""
    b = GraphBuilder("small")
    x = b.input("x", X)
    w = b.constant("w", Splat(0.5, "float32", (4, 2, 3, 3)))
    bias = b.constant("bias", np.zeros(4, "float32"))
    conv = Conv(pads=(1, 1, 1, 1), groups=2)
    one = b.add(Relu(), b.add(conv, x, w, bias, name="first"))
    two = b.add(Relu(), b.add(conv, one, w), output="odd name\n")
    return b.finish((b.add(Concat(1), one, two, output="y"),))


def test_a_graph_prints_as_short_text() -> None:
    assert str(small()) == (
        "graph small(x: float32[1, 4, 8, 8]):\n"
        "    # 5 nodes; 2 constants: 1 splats, 16 B in the others\n"
        "    conv = Conv[pads=(1, 1, 1, 1), groups=2](x, splat(0.5), bias)  # float32[1, 4, 8, 8]\n"
        "    relu = Relu(conv)  # float32[1, 4, 8, 8]\n"
        "    conv_1 = Conv[pads=(1, 1, 1, 1), groups=2](relu, splat(0.5))  # float32[1, 4, 8, 8]\n"
        "    'odd name\\n' = Relu(conv_1)  # float32[1, 4, 8, 8]\n"
        "    y = Concat[axis=1](relu, 'odd name\\n')  # float32[1, 8, 8, 8]\n"
        "    return y"
    )
    assert repr(small()) == str(small())


def test_a_notebook_shows_the_text_with_names_escaped() -> None:
    b = GraphBuilder("<script>")
    graph = b.finish((b.add(Relu(), b.input("x", X), output="<b>"),))
    shown = graph._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown


def test_a_graph_is_a_value_that_pickles() -> None:
    graph = small()
    again = pickle.loads(pickle.dumps(graph))
    assert str(again) == str(graph)
    assert again.nodes == graph.nodes


def test_operators_are_frozen_hashable_and_compare_by_their_fields() -> None:
    assert Conv(groups=2) == Conv(groups=2)
    assert hash(Conv(groups=2)) == hash(Conv(groups=2))
    assert Conv(groups=2) != Conv()
    assert Add() != Relu()
    assert len({operator.__name__ for operator in OPERATORS}) == len(OPERATORS)
    with pytest.raises(AttributeError):
        Conv().groups = 3  # type: ignore[misc]


def test_the_same_nodes_and_constants_give_the_same_object() -> None:
    graph = small()
    assert rebuilt(graph, graph.nodes, graph.constants) is graph
    assert rebuilt(graph, graph.nodes, {**graph.constants, "z": Splat(0, "int64", ())}) is not graph


def test_the_builder_names_outputs_and_copies_where_it_must() -> None:
    b = GraphBuilder("g")
    x = b.input("x", X)
    r = b.add(Relu(), x)
    c = b.constant("c", Splat(1.0, "float32", (2,)))
    graph = b.finish({"y": r, "again": r, "same": x, "one": c})
    verify(graph)
    assert graph.outputs == ("y", "again", "same", "one")
    assert [(n.op, n.inputs, n.outputs) for n in graph.nodes] == [
        (Relu(), ("x",), ("y",)),
        (Identity(), ("y",), ("again",)),
        (Identity(), ("x",), ("same",)),
    ]
    assert list(graph.constants) == ["one"]


def test_the_builder_refuses_names_that_are_taken_or_unknown() -> None:
    b = GraphBuilder("g")
    b.input("x", X)
    with pytest.raises(ModelError) as caught:
        b.constant("x", Splat(1.0, "float32", ()))
    assert str(caught.value) == "ModelError: graph: 'x' is defined twice. [build-duplicate]"
    with pytest.raises(ModelError) as caught:
        b.add(Relu(), "z", name="r")
    expected = "graph: node 'r' (Relu) reads 'z', which is not defined yet. [build-undefined]"
    assert str(caught.value) == f"ModelError: {expected}"
    with pytest.raises(ModelError) as caught:
        make_graph("g", {"x": X}, ("y",), (GraphNode(Relu(), ("z",), ("y",)),), {})
    expected = (
        "graph: node 'y' (Relu) reads 'z', which nothing before it defines. [graph-undefined]"
    )
    assert str(caught.value) == f"ModelError: {expected}"


def test_a_node_that_does_not_fit_names_itself_and_its_inputs() -> None:
    b = GraphBuilder("g")
    x = b.input("x", X)
    with pytest.raises(ModelError) as caught:
        b.add(Softmax((7,)), x, name="odd")
    assert str(caught.value) == (
        "ModelError: Softmax: axes (7,) are not ascending axes of float32[1, 4, 8, 8]. "
        "[op-axes]\n"
        "  in node 'odd' (Softmax):\n"
        "    'x': float32[1, 4, 8, 8]"
    )


def test_a_node_defines_a_value_for_each_output_of_its_operator() -> None:
    b = GraphBuilder("g")
    x = b.input("x", X)
    with pytest.raises(ModelError) as caught:
        b.add(TopK(1, 2), x, output="top")
    assert str(caught.value) == (
        "ModelError: graph: node 'top' (TopK) defines 1 of 2 outputs; expected a value for each, "
        "read or not. [graph-outputs]\n"
        "  in node 'top' (TopK):\n"
        "    'x': float32[1, 4, 8, 8]\n"
        "  Hint: GraphBuilder.add_node(GraphNode(op, inputs, outputs)) names them all."
    )
    b.add_node(GraphNode(TopK(1, 2), (x,), ("top", "at")))
    graph = b.finish(("at",))
    verify(graph)
    (node,) = graph.nodes
    twice = replace(node, outputs=("top", "top"))
    for nodes, problem in (
        ((replace(node, outputs=("at",)),), "defines 1 of 2 outputs"),
        ((replace(node, outputs=("at", "top")),), "computes 'at' as float32"),
        ((twice,), "defines 'top' again"),
    ):
        with pytest.raises(InternalError, match=problem):
            verify(replace(graph, nodes=nodes))


class Unknown(Relu):
    """One of ours, by its module, that is not in the set."""

    __module__ = "tilewright.graph.ops.unknown"


def _broken() -> dict[str, Graph]:
    graph = small()
    first, second, *rest = graph.nodes
    return {
        "an input is listed twice": replace(graph, inputs=("x", "x")),
        "'x' is an input and a constant": replace(
            graph, constants={**graph.constants, "x": Splat(0.0, "float32", X.shape)}
        ),
        "constant 'w' is float32[1] and not float32[4, 2, 3, 3]": replace(
            graph, constants={**graph.constants, "w": Splat(0.0, "float32", (1,))}
        ),
        "node 'relu' (Unknown) is not one of the core operators": replace(
            graph, nodes=(first, GraphNode(Unknown(), second.inputs, second.outputs), *rest)
        ),
        "node 'relu' (Relu) reads 'conv' before it is defined": replace(
            graph, nodes=(second, first, *rest)
        ),
        "node 'first' (Conv) defines 'conv' again": replace(graph, nodes=(first, *graph.nodes)),
        "node 'relu' (Softmax) does not fit its inputs: Softmax: axes (9,) are not ascending axes "
        "of float32[1, 4, 8, 8].": replace(
            graph, nodes=(first, GraphNode(Softmax((9,)), second.inputs, second.outputs), *rest)
        ),
        "node 'first' (Conv) computes 'conv' as float32[1, 4, 8, 8] and not float32[1]": replace(
            graph, types={**graph.types, "conv": TensorType("float32", (1,))}
        ),
        "output 'z' is not defined": replace(graph, outputs=("z",)),
        "'z' has a type and no definition": replace(graph, types={**graph.types, "z": X}),
    }


@pytest.mark.parametrize(("problem", "graph"), list(_broken().items()), ids=list(range(10)))
def test_the_checker_finds_what_is_wrong(problem: str, graph: Graph) -> None:
    verify(small())
    with pytest.raises(InternalError) as caught:
        verify(graph)
    assert caught.value.message.rstrip(".") == f"verify: graph 'small': {problem.rstrip('.')}"


def test_a_failure_of_the_checker_says_that_it_is_our_defect(
    golden: Callable[[str, str], None],
) -> None:
    with pytest.raises(InternalError) as caught:
        verify(replace(small(), outputs=("z",)))
    golden("errors/graph_verify.txt", str(caught.value))
