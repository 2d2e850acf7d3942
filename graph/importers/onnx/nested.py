"""Graphs within the nodes of an ONNX graph: branches, and bodies of loops."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto

from ...errors import ModelError

DEEPEST = 16  # of graphs within each other


def graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs within a node."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: GraphProto, depth: int = 0) -> Iterator[GraphProto]:
    """A graph and all within its nodes. Raises: ModelError where they lie too deep."""
    if depth > DEEPEST:
        raise ModelError(
            f"model: graphs lie within each other more than {DEEPEST} deep; expected fewer "
            "branches and loops around a node.",
            code="onnx-depth",
        )
    yield graph
    for node in graph.node:
        for inner in graphs_of(node):
            yield from all_graphs(inner, depth + 1)


def reads_of(node: NodeProto) -> tuple[str, ...]:
    """What a node reads, with what the graphs within it read of those around them."""
    inner = (name for graph in graphs_of(node) for name in free_of(graph))
    return (*node.input, *dict.fromkeys(inner))


def free_of(graph: GraphProto) -> Iterator[str]:
    """What a graph reads of those around it."""
    own = {item.name for item in (*graph.input, *graph.initializer)}
    own.update(name for node in graph.node for name in node.output)
    read = (name for node in graph.node for name in reads_of(node))
    for name in (*read, *(item.name for item in graph.output)):
        if name and name not in own:
            yield name
