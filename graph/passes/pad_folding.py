"""Fold what pads the data of convolutions and pools into their own pads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.slicing import Pad
from ..ops.spatial import Pads, is_spatial


@dataclass(frozen=True, slots=True)
class PadFolding:
    """Replace a Pad and all that reads it by operators that pad as it does.

    Conv[pads p](Pad[before b, after a, of 0](x))   ->   Conv[pads p + (b, a)](x)

    Exporters write a Pad where the ends differ, or where the padding counts in a mean. A Pad that
    something else reads, too, stays, and so do its readers: it would be computed anyway.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        readers: dict[str, GraphNode] = {}
        gone = set[str]()
        consumers = graph.consumers
        for node in graph.nodes:
            found = _folded(graph, node, consumers[node.outputs[0]])
            if found:
                gone.add(node.outputs[0])
                readers.update((reader.outputs[0], reader) for reader in found)
        if not gone:
            return graph
        builder = GraphBuilder.like(graph)
        for node in graph.nodes:
            if node.outputs[0] not in gone:
                builder.add_node(readers.get(node.outputs[0], node))
        result = builder.finish(graph.outputs)
        return self(rebuilt(graph, result.nodes, result.constants))  # a Pad may read a Pad


def _folded(graph: Graph, pad: GraphNode, readers: list[GraphNode]) -> list[GraphNode]:
    """The readers of a Pad as they read its data; none where one of them cannot."""
    value = pad.outputs[0]
    if not isinstance(pad.op, Pad) or pad.op.mode != "constant" or value in graph.outputs:
        return []
    pads = Pads(pad.op.before, pad.op.after, pad.op.value)
    found = []
    for reader in readers:
        first, *others = reader.inputs
        op = reader.op.padding(pads) if is_spatial(reader.op) else None
        if op is None or first != value or value in others:
            return []
        found.append(replace(reader, op=op, inputs=(pad.inputs[0], *others)))
    return found
