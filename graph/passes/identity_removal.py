"""Drop nodes that change nothing, and join moves that follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.movement import Identity
from ..types import Splat


@dataclass(frozen=True, slots=True)
class IdentityRemoval:
    """Remove moves that do nothing, Concat, Sum, Min and Max of one, and arithmetic and logic with
    a constant that changes nothing: x * 1, x + 0, x / 1, x to the power of 1, a choice that is
    always the same; join Reshapes and Transposes.

    x + 0 is x but for the sign of a zero.
    Only an Identity from an input of the model to an output, or from one output to another, stays.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        builder = GraphBuilder.like(graph)
        producers = graph.producers
        same: dict[str, str] = {}
        ends = set(graph.inputs) | set(graph.outputs)
        for node in graph.nodes:
            inputs = tuple(same.get(value, value) for value in node.inputs)
            joined = _joined(GraphNode(node.op, inputs, node.outputs, node.name), producers)
            value = _passed_on(joined, builder)
            if value is not None:
                if joined.outputs[0] not in graph.outputs or value not in ends:
                    same[joined.outputs[0]] = value
                    continue
                joined = GraphNode(Identity(), (value,), joined.outputs, joined.name)
            producers.update(dict.fromkeys(joined.outputs, joined))
            builder.add_node(joined)
        result = builder.finish({name: same.get(name, name) for name in graph.outputs})
        return rebuilt(graph, result.nodes, result.constants)


def _passed_on(node: GraphNode, builder: GraphBuilder) -> str | None:
    """The input that the result of a node equals; None when there is none."""

    def is_all(position: int, number: int) -> bool:
        return _is_all(builder, node.inputs[position], number)

    position = node.op.unchanged_input(len(node.inputs), is_all)
    if position is None:
        return None
    value = node.inputs[position]
    return value if (builder.types[value],) == node.infer(builder.types) else None


def _is_all(builder: GraphBuilder, value: str, number: int) -> bool:
    """Whether a value is a constant whose elements are all that number."""
    constant = builder.constants.get(value)
    if constant is None:
        return False
    if isinstance(constant, Splat):
        return constant.value == number
    first = constant.reshape(-1)[:1]  # tells most constants apart at once
    return bool(np.all(np.equal(first, number)) and np.all(np.equal(constant, number)))


def _joined(node: GraphNode, producers: dict[str, GraphNode]) -> GraphNode:
    """A node that also does what the one before it does, and reads that one's input, where there is
    such an operator: of two Reshapes, of two Transposes.
    """
    before = producers.get(node.inputs[0]) if node.inputs else None
    if before is None or len(before.outputs) > 1:
        return node
    both = node.op.absorb(before.op)
    if both is None:
        return node
    return GraphNode(both, before.inputs, node.outputs, node.name)
