"""Smaller bodies of branches and loops: one node at a time becomes an Identity of something that it
reads, and nodes that nobody reads are removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto

from ..importers.onnx.nested import all_graphs, graphs_of


def body_nodes(model: ModelProto) -> list[NodeProto]:
    """The nodes of all graphs within nodes, outer ones first."""
    return [node for graph in _bodies(model) for node in graph.node]


def with_identities(model: ModelProto, place: int) -> Iterator[ModelProto]:
    """The model where a node, one of `body_nodes`, hands on one of its inputs; none where several
    of its results are read.
    """
    node, read = body_nodes(model)[place], _read(model)
    results = [name for name in node.output if name in read]
    if node.op_type == "Identity" or len(results) != 1:
        return
    for name in dict.fromkeys(filter(None, node.input)):
        made = ModelProto()
        made.CopyFrom(model)
        changed = NodeProto(op_type="Identity", input=[name], output=results)
        if node.name:
            changed.name = node.name
        body_nodes(made)[place].CopyFrom(changed)
        yield made


def without_unread(model: ModelProto) -> Iterator[ModelProto]:
    """The model without one node of a body whose results nobody reads, the last ones first."""
    read = _read(model)
    for number, graph in reversed(list(enumerate(_bodies(model)))):
        for place, node in reversed(list(enumerate(graph.node))):
            if not read.intersection(node.output):
                made = ModelProto()
                made.CopyFrom(model)
                del _bodies(made)[number].node[place]
                yield made


def _bodies(model: ModelProto) -> list[GraphProto]:
    return [
        graph for node in model.graph.node for body in graphs_of(node) for graph in all_graphs(body)
    ]


def _read(model: ModelProto) -> set[str]:
    """Every name that a node reads, or that a graph gives."""
    graphs = list(all_graphs(model.graph))
    names = {name for graph in graphs for node in graph.node for name in node.input}
    return names | {item.name for graph in graphs for item in graph.output}
