"""Values that are other values under another shape: no kernel runs for them, they are the same
bytes.

A Reshape, an Identity and a Transpose that only moves axes of size 1 keep the row-major order of
their input.
"""

from __future__ import annotations

from collections.abc import Mapping

from .ir import Graph, Node
from .ops.movement import Identity, Reshape, Transpose
from .types import TensorType


def is_view(node: Node, types: Mapping[str, TensorType]) -> bool:
    """Whether the result of `node` has the bytes of its input."""
    match node.op:
        case Reshape() | Identity():
            return True
        case Transpose(permutation):
            shape = types[node.inputs[0]].shape
            long = [axis for axis in permutation if shape[axis] != 1]
            return 0 in shape or long == sorted(long)
    return False


def storage(graph: Graph) -> dict[str, str]:
    """The input, constant or computed value whose bytes each value has; most have their own."""
    roots = {value: value for value in graph.types}
    for node in graph.nodes:
        if is_view(node, graph.types):
            roots[node.outputs[0]] = roots[node.inputs[0]]
    return roots
