"""A graph at one choice of the sizes that a run decides: what it means then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...tir.dim import Dim
from ...tir.sizes import Size, shape_with, substituted
from ..ops.base import Operator
from ..types import TensorType
from .ir import Graph, GraphNode, dims_of_graph, make_graph, open_attributes

Values = Mapping[Dim, int]


def graph_at(graph: Graph, values: Values) -> Graph:
    """The graph with numbers for these sizes; itself where there are none. Sizes that a run
    computes stay, unless they are given.
    """
    if not values:
        return graph
    inputs = {name: type_at(graph.types[name], values) for name in graph.inputs}
    nodes = (node_at(node, values) for node in graph.nodes)
    return make_graph(graph.name, inputs, graph.outputs, nodes, graph.constants)


def usual_sizes(graph: Graph) -> dict[Dim, int]:
    """The sizes for which a plan is chosen, those that a run computes among them."""
    return {dim: dim.usual for dim in dims_of_graph(graph)}


def least_sizes(graph: Graph) -> dict[Dim, int]:
    """All sizes as small as can be."""
    return {dim: dim.low for dim in dims_of_graph(graph)}


def type_at(type_: TensorType, values: Values) -> TensorType:
    """The type with numbers for these sizes."""
    return TensorType(type_.dtype, shape_with(type_.shape, values))


def node_at(node: GraphNode, values: Values) -> GraphNode:
    """The node with numbers for the sizes among its operator's attributes."""
    return replace(node, op=operator_at(node.op, values)) if has_sizes(node.op) else node


def operator_at(op: Operator, values: Values) -> Operator:
    """The operator with numbers for the sizes among its attributes."""
    changed = {name: _at(getattr(op, name), values) for name in open_attributes(op)}
    return replace(op, **changed) if changed else op


def has_sizes(op: Operator) -> bool:
    """Whether a run decides an attribute of an operator."""
    return bool(open_attributes(op))


def _at(value: object, values: Values) -> object:
    if isinstance(value, Graph):
        return graph_at(value, values)
    if isinstance(value, Size):
        return substituted(value, values)
    return tuple(_at(one, values) for one in value) if isinstance(value, tuple) else value
