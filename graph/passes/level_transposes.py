"""Transpose levels after they have become other levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ir.views import is_view
from ..ops.base import OperatorRole
from ..ops.movement import Transpose
from .exchange import exchanged, only_reader
from .levels import has_bytes

_BYTES = ("int8", "uint8")


@dataclass(frozen=True, slots=True)
class LevelTransposes:
    """Let a Transpose of bytes follow the elementwise operators that make other bytes of them.

    f(transpose(b))   ->   transpose(f(b))

    f has no other operands but numbers, and nobody else reads b or what is between. So f runs in
    vectors, in the kernel that makes b where it has one, and what is moved is bytes alone: as part
    of a Transpose, each number is converted by itself. Constants are in full.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_bytes)

    def __call__(self, graph: Graph) -> Graph:
        found = {one.steps[-1].outputs[0]: one for one in _chains(graph)}
        if not found:
            return graph
        gone = {node.outputs[0] for one in found.values() for node in (one.move, *one.steps[:-1])}
        return exchanged(graph, found, gone, _write)


@dataclass(frozen=True, slots=True)
class _Chain:
    """A Transpose and the operators behind it, each of which reads the one before."""

    move: GraphNode
    steps: tuple[GraphNode, ...]


def _chains(graph: Graph) -> Iterator[_Chain]:
    readers = graph.consumers
    makers = graph.producers
    for node in graph.nodes:
        if not isinstance(node.op, Transpose) or not _is_alone(graph, node, makers, readers):
            continue
        steps = list[GraphNode]()
        value = node.outputs[0]
        while (after := only_reader(graph, value, readers)) and _is_plain(graph, after, value):
            steps.append(after)
            value = after.outputs[0]
        while steps and graph.types[steps[-1].outputs[0]].dtype not in _BYTES:
            steps.pop()
        if steps:
            yield _Chain(node, tuple(steps))


def _is_alone(
    graph: Graph,
    move: GraphNode,
    makers: Mapping[str, GraphNode],
    readers: Mapping[str, list[GraphNode]],
) -> bool:
    """Whether it moves bytes that a kernel makes for nobody else, under whichever shape."""
    (value,) = move.inputs
    if graph.types[value].dtype not in _BYTES:
        return False
    while only_reader(graph, value, readers) is not None and value in makers:
        if not is_view(makers[value], graph.types):
            return not isinstance(makers[value].op, Transpose)
        (value,) = makers[value].inputs
    return False


def _is_plain(graph: Graph, node: GraphNode, value: str) -> bool:
    """Whether a node computes each element of a value by itself, with numbers alone."""
    types = graph.types
    others = [other for other in node.inputs if other != value]
    return (
        node.op.role is OperatorRole.ELEMENTWISE
        and len(node.outputs) == 1
        and types[node.outputs[0]].shape == types[value].shape
        and all(other in graph.constants and types[other].elements == 1 for other in others)
    )


def _write(builder: GraphBuilder, one: _Chain) -> None:
    """The operators, then the Transpose."""
    (source,), moved, new = one.move.inputs, one.move.outputs[0], ""
    for node in one.steps:
        new = builder.fresh(f"{node.outputs[0]}.unmoved")
        inputs = tuple(source if value == moved else value for value in node.inputs)
        builder.add_node(GraphNode(node.op, inputs, (new,), node.name))
        source, moved = new, node.outputs[0]
    (last,) = one.steps[-1].outputs
    builder.add(one.move.op, new, output=last, name=one.move.name)
