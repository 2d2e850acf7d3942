"""Drop nodes that change nothing, and join moves that follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..build import GraphBuilder
from ..ir import Graph, Node, rebuilt
from ..ops.arithmetic import Add, Div, Max, Min, Mul, Pow, Sub, Sum
from ..ops.functions import Cast
from ..ops.logic import And, Or, Where
from ..ops.movement import Concat, Identity, Reshape, Transpose
from ..types import Splat, composed


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
            joined = _joined(Node(node.op, inputs, node.outputs, node.name), producers)
            value = _passed_on(joined, builder)
            if value is not None:
                if joined.outputs[0] not in graph.outputs or value not in ends:
                    same[joined.outputs[0]] = value
                    continue
                joined = Node(Identity(), (value,), joined.outputs, joined.name)
            producers[joined.outputs[0]] = joined
            builder.add_node(joined)
        result = builder.finish({name: same.get(name, name) for name in graph.outputs})
        return rebuilt(graph, result.nodes, result.constants)


def _passed_on(node: Node, builder: GraphBuilder) -> str | None:
    """The input that the result of a node equals; None when there is none."""
    value = _candidate(node, builder)
    if value is None or (builder.types[value],) != node.infer(builder.types):
        return None
    return value


def _candidate(node: Node, builder: GraphBuilder) -> str | None:
    """The input whose elements are those of the result, which may be of another shape."""
    first = node.inputs[0]
    match node.op:
        case Identity() | Reshape() | Cast():
            return first
        case Transpose(permutation):
            return first if permutation == tuple(range(len(permutation))) else None
        case Concat() | Sum() | Min() | Max() if len(node.inputs) == 1:
            return first
        case Add() | Mul() | And() | Or():
            neutral = isinstance(node.op, Mul | And)
            for value, other in (node.inputs, node.inputs[::-1]):
                if _is_all(builder, other, neutral):
                    return value
        case Sub() | Div() | Pow():
            return first if _is_all(builder, node.inputs[1], not isinstance(node.op, Sub)) else None
        case Where():
            condition, on_true, on_false = node.inputs
            if _is_all(builder, condition, True):
                return on_true
            return on_false if _is_all(builder, condition, False) else None
    return None


def _is_all(builder: GraphBuilder, value: str, number: bool) -> bool:
    """Whether a value is a constant whose elements are all 1, or all 0."""
    constant = builder.constants.get(value)
    if constant is None:
        return False
    if isinstance(constant, Splat):
        return constant.value == number
    first = constant.reshape(-1)[:1]  # tells most constants apart at once
    return bool(np.all(np.equal(first, number)) and np.all(np.equal(constant, number)))


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
