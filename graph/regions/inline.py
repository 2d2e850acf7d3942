"""Nodes of a region as nodes of the graph around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.movement import Identity

Expand = Callable[[GraphBuilder, GraphNode], Sequence[str] | None]


def inline(builder: GraphBuilder, region: Graph, given: Sequence[str]) -> tuple[str, ...]:
    """Add the nodes of a region, whose inputs are the values `given`; its outputs."""
    names = dict(zip(region.inputs, given, strict=True))
    add_nodes(builder, region, region.nodes, names)
    return tuple(
        names[value] if value in names else _constant(builder, region, value, names)
        for value in region.outputs
    )


def add_nodes(
    builder: GraphBuilder, region: Graph, nodes: Iterable[GraphNode], names: dict[str, str]
) -> None:
    """Add nodes of a region, and the constants that they read.

    names: what its values are called in the builder, to which those of the nodes are added.
    """
    for node in nodes:
        for value in node.inputs:
            if value not in names:
                _constant(builder, region, value, names)
        inputs = tuple(names[value] for value in node.inputs)
        outputs = tuple(map(builder.fresh, node.outputs))
        builder.add_node(GraphNode(node.op, inputs, outputs, node.name))
        names.update(zip(node.outputs, outputs, strict=True))


def _constant(builder: GraphBuilder, region: Graph, value: str, names: dict[str, str]) -> str:
    names[value] = builder.constant(builder.fresh(value), region.constants[value])
    return names[value]


def expanded(graph: Graph, expand: Expand) -> Graph:
    """The graph with other nodes in place of some; itself where nothing changes.

    expand: adds the nodes that stand for one to a builder and gives its outputs, or None.
    """
    builder, same = GraphBuilder.like(graph), dict[str, str]()
    for node in graph.nodes:
        inputs = tuple(same.get(value, value) for value in node.inputs)
        moved = GraphNode(node.op, inputs, node.outputs, node.name)
        values = expand(builder, moved)
        if values is None:
            builder.add_node(node if inputs == node.inputs else moved)
            continue
        for output, value in zip(node.outputs, values, strict=True):
            if output not in graph.outputs:
                same[output] = value
            elif output != value:
                builder.add_node(GraphNode(Identity(), (value,), (output,)))
    return rebuilt(graph, builder.nodes, builder.constants)
