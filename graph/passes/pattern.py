"""Patterns of nodes: what several nodes compute together, as a tree of operators.

    x = Value("x")
    swish = Made(Mul, (x, Made(Sigmoid, (x,))))
    found = matched(graph, graph.producers, "y", swish)   # found.values["x"]

A name stands for one value, however often it occurs; a part that occurs twice may be one node or
two equal ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..ir.ir import Graph, GraphNode
from ..ops.base import Operator
from ..types import array_of


@dataclass(frozen=True, slots=True)
class Value:
    """Any value."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A constant of one element."""

    name: str


@dataclass(frozen=True, slots=True)
class Made:
    """What an operator of one kind, with one output, makes of `inputs`; those of Add and Mul stand
    in any order.

    name: under which the node is found, "" for none.
    """

    kind: type[Operator]
    inputs: tuple[Pattern, ...]
    name: str = ""


Pattern = Value | Number | Made


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """What a pattern's names stand for; `inside` are the values of all its nodes."""

    values: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    nodes: Mapping[str, GraphNode] = field(default_factory=dict)
    inside: frozenset[str] = frozenset()


def matched(
    graph: Graph, makers: Mapping[str, GraphNode], value: str, pattern: Pattern
) -> PatternMatch | None:
    """The pattern found at `value`; None where it is something else. makers: of the graph."""
    return _Matcher(graph, makers).match(value, pattern, PatternMatch())


@dataclass(frozen=True, slots=True)
class _Matcher:
    graph: Graph
    makers: Mapping[str, GraphNode]

    def match(self, value: str, pattern: Pattern, found: PatternMatch) -> PatternMatch | None:
        match pattern:
            case Value(name):
                if found.values.get(name, value) != value:
                    return None
                return replace(found, values={**found.values, name: value})
            case Number(name):
                constant = self.graph.constants.get(value)
                if constant is None or self.graph.types[value].elements != 1:
                    return None
                number = float(array_of(constant).reshape(1)[0])
                if found.numbers.get(name, number) != number:
                    return None
                return replace(found, numbers={**found.numbers, name: number})
            case Made(kind, inputs):
                node = self.makers.get(value)
                if node is None or type(node.op) is not kind or len(node.inputs) != len(inputs):
                    return None
                if node.outputs != (value,):
                    return None
                return self._inputs(node, pattern, found)

    def _inputs(self, node: GraphNode, pattern: Made, found: PatternMatch) -> PatternMatch | None:
        orders = [node.inputs]
        if pattern.kind.commutative:
            orders.append(node.inputs[::-1])
        for order in orders:
            result: PatternMatch | None = found
            for value, inner in zip(order, pattern.inputs, strict=True):
                result = self.match(value, inner, result) if result is not None else None
            if result is not None:
                nodes = {**result.nodes, pattern.name: node} if pattern.name else result.nodes
                return replace(result, nodes=nodes, inside=result.inside | {*node.outputs})
        return None
