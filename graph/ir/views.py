"""Values that are other values under another shape: no kernel runs for them, they are the same
bytes.

Which operators keep the row-major order of their input is theirs to say (`Operator.is_view`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..types import TensorType
from .ir import Graph, GraphNode


def is_view(node: GraphNode, types: Mapping[str, TensorType]) -> bool:
    """Whether the result of `node` has the bytes of its input."""
    return node.op.is_view(tuple(types[value] for value in node.inputs))


def storage(graph: Graph) -> dict[str, str]:
    """The input, constant or computed value whose bytes each value has; most have their own."""
    roots = {value: value for value in graph.types}
    for node in graph.nodes:
        if is_view(node, graph.types):
            roots[node.outputs[0]] = roots[node.inputs[0]]
    return roots
