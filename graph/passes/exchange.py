"""Replace what several nodes compute by nodes of another kind, for the passes that find such."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt

Found = TypeVar("Found")


def only_reader(
    graph: Graph, value: str, readers: Mapping[str, list[GraphNode]]
) -> GraphNode | None:
    """The node that alone reads a value; None where others do, or the caller."""
    alone = value not in graph.outputs and len(readers[value]) == 1
    return readers[value][0] if alone else None


def exchanged(
    graph: Graph,
    found: Mapping[str, Found],
    gone: Collection[str],
    write: Callable[[GraphBuilder, Found], None],
) -> Graph:
    """The graph with what was found, by its last value, written anew in the place of the node that
    made that, and without the nodes that made the values `gone`.
    """
    builder = GraphBuilder.like(graph)
    for node in graph.nodes:
        if node.outputs[0] in found:
            write(builder, found[node.outputs[0]])
        elif node.outputs[0] not in gone:
            builder.add_node(node)
    result = builder.finish(graph.outputs)
    return rebuilt(graph, result.nodes, result.constants)
