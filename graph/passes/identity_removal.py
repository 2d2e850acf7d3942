"""Drop nodes that change nothing, and join moves that follow one another."""

from __future__ import annotations

from dataclasses import dataclass

from ..build import GraphBuilder
from ..ir import Graph, Node, rebuilt
from ..ops.base import Operator
from ..ops.elementwise import Sum
from ..ops.movement import Concat, Identity, Reshape, Transpose
from ..types import TensorType, composed


@dataclass(frozen=True, slots=True)
class IdentityRemoval:
    """Remove moves that do nothing, Concat and Sum of one; join Reshapes and Transposes.

    Only an Identity from an input of the model to an output, or from one output to another, stays.
    """

    def __call__(self, graph: Graph) -> Graph:
        builder = GraphBuilder.like(graph)
        producers = graph.producers
        same: dict[str, str] = {}
        ends = set(graph.inputs) | set(graph.outputs)
        for node in graph.nodes:
            inputs = tuple(same.get(value, value) for value in node.inputs)
            joined = _joined(Node(node.op, inputs, node.outputs, node.name), producers)
            passed_on = joined.outputs[0] in graph.outputs and joined.inputs[0] in ends
            if _changes_nothing(joined.op, len(joined.inputs), builder.types[joined.inputs[0]]):
                if not passed_on:
                    same[joined.outputs[0]] = joined.inputs[0]
                    continue
                joined = Node(Identity(), joined.inputs, joined.outputs, joined.name)
            producers[joined.outputs[0]] = joined
            builder.add_node(joined)
        result = builder.finish({name: same.get(name, name) for name in graph.outputs})
        return rebuilt(graph, result.nodes, result.constants)


def _changes_nothing(op: Operator, operands: int, type_: TensorType) -> bool:
    match op:
        case Identity():
            return True
        case Reshape(shape):
            return shape == type_.shape
        case Transpose(permutation):
            return permutation == tuple(range(type_.rank))
        case Concat() | Sum():
            return operands == 1
    return False


def _joined(node: Node, producers: dict[str, Node]) -> Node:
    """A Reshape or Transpose that reads another of its kind reads that one's input instead."""
    before = producers.get(node.inputs[0])
    if before is None:
        return node
    match before.op, node.op:
        case Reshape(), Reshape():
            return Node(node.op, before.inputs, node.outputs, node.name)
        case Transpose(first), Transpose(second):
            return Node(Transpose(composed(first, second)), before.inputs, node.outputs, node.name)
    return node
