"""Drop what no output depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.data_dims import dims_taken, size_makers
from ..ir.ir import Graph, GraphNode, rebuilt


@dataclass(frozen=True, slots=True)
class DeadCode:
    """Remove nodes and constants from which no path leads to an output. A node with several values
    stays as long as one of them is needed, and so does what computes a size of such a node.

    Inputs stay: they are the model's interface.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        needed, kept = set(graph.outputs), list[GraphNode]()
        makers = size_makers(graph)
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.outputs):
                kept.append(node)
                needed.update(node.inputs)
                if makers:
                    sizes = dims_taken(node, graph.types)
                    needed.update(makers[dim].outputs[0] for dim in sizes if dim in makers)
        nodes = reversed(kept)
        constants = {name: value for name, value in graph.constants.items() if name in needed}
        return rebuilt(graph, nodes, constants)
