"""Drop what no output depends on."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx

from ..ir import Graph, dataflow, rebuilt


@dataclass(frozen=True, slots=True)
class DeadCode:
    """Remove nodes and constants from which no path leads to an output.

    Inputs stay: they are the model's interface.
    """

    def __call__(self, graph: Graph) -> Graph:
        flow = dataflow(graph)
        needed = set(graph.outputs)
        for output in graph.outputs:
            needed |= nx.ancestors(flow, output)
        nodes = (node for node in graph.nodes if needed.intersection(node.outputs))
        constants = {name: value for name, value in graph.constants.items() if name in needed}
        return rebuilt(graph, nodes, constants)
