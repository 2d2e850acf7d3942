"""Let reductions keep their axes where Reshapes behind them bring these back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, rebuilt
from ..ops.base import OperatorRole
from ..ops.movement import Reshape
from ..ops.reduction import Reduction, reduced_shape
from ..types import Shape


@dataclass(frozen=True, slots=True)
class KeptAxes:
    """Compute what is made of reductions alone in the shape in which it is read.

    m = ReduceMean(x); v = ReduceMean(x * x) - m * m; Reshape(m), Reshape(v), each with the axes of
    x again, of size 1   ->   the same with reductions that keep their axes, and no Reshape

    Requires: all that is read of it are such Reshapes; between them and the reductions, which are
    of equal shapes along the same axes, only elementwise operators and numbers.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        found = list(_groups(graph))
        if not found:
            return graph
        builder = GraphBuilder.like(graph)
        # what a value is called now that it has its axes: as the Reshape of it was, if there is one
        named = {source: made for one in found for made, source in one.reshapes.items()}
        for value in (value for one in found for value in one.members if value not in named):
            named[value] = builder.fresh(f"{value}.kept")
        named |= {made: named[source] for one in found for made, source in one.reshapes.items()}
        dropped = {made for one in found for made in one.reshapes}
        for node in graph.nodes:
            (value, *_) = node.outputs
            if value in dropped:
                continue
            inputs = tuple(named.get(one, one) for one in node.inputs)
            op, outputs = node.op, node.outputs
            if value in named:
                op = replace(op, keepdims=True) if isinstance(op, Reduction) else op
                outputs = (named[value],)
            builder.add_node(GraphNode(op, inputs, outputs, node.name))
        result = builder.finish(graph.outputs)
        return rebuilt(graph, result.nodes, result.constants)


@dataclass(slots=True)
class _Group:
    """Values that are made of reductions. plain, kept: their shape without and with the axes.

    reshapes: those that bring the axes back, and what they read.
    """

    plain: Shape
    kept: Shape
    members: set[str] = field(default_factory=set)
    reshapes: dict[str, str] = field(default_factory=dict)


def _groups(graph: Graph) -> Iterator[_Group]:
    makers, readers = graph.producers, graph.consumers
    seen = set[str]()
    for node in graph.nodes:
        if node.outputs[0] in seen or not _drops_axes(node):
            continue
        group = _grown(graph, makers, readers, node)
        if group is not None:
            seen |= group.members
            yield group


def _drops_axes(node: GraphNode) -> bool:
    return isinstance(node.op, Reduction) and not node.op.keepdims


def _grown(
    graph: Graph,
    makers: Mapping[str, GraphNode],
    readers: Mapping[str, list[GraphNode]],
    first: GraphNode,
) -> _Group | None:
    """All that is made of a reduction and its like; None where it is read in another shape."""
    op = first.op
    assert isinstance(op, Reduction)
    source = graph.types[first.inputs[0]].shape
    group = _Group(
        graph.types[first.outputs[0]].shape, reduced_shape(source, op.axes, keepdims=True)
    )
    left = [first.outputs[0]]
    while left:
        value = left.pop()
        if value in group.members:
            continue
        if value in graph.outputs:
            return None
        group.members.add(value)
        maker = makers[value]
        if not isinstance(maker.op, Reduction):
            others = [one for one in maker.inputs if not _is_number(graph, one)]
            if not all(_fits(graph, makers, one, op, source, group) for one in others):
                return None
            left += others
        for reader in readers[value]:
            made = reader.outputs[0]
            if isinstance(reader.op, Reshape) and graph.types[made].shape == group.kept:
                if made in graph.outputs:
                    return None
                group.reshapes[made] = value
            elif _is_pointwise(graph, reader, group.plain):
                left.append(made)
            else:
                return None
    return group if group.reshapes else None


def _is_number(graph: Graph, value: str) -> bool:
    return value in graph.constants and graph.types[value].elements == 1


def _is_pointwise(graph: Graph, node: GraphNode, shape: Shape) -> bool:
    same = graph.types[node.outputs[0]].shape == shape
    return node.op.role is OperatorRole.ELEMENTWISE and same


def _fits(
    graph: Graph,
    makers: Mapping[str, GraphNode],
    value: str,
    op: Reduction,
    source: Shape,
    group: _Group,
) -> bool:
    """Whether a value may be one of the group: made of others, or by a reduction of the like."""
    node = makers.get(value)
    if node is None or graph.types[value].shape != group.plain:
        return False
    if not isinstance(node.op, Reduction):
        return _is_pointwise(graph, node, group.plain)
    same = graph.types[node.inputs[0]].shape == source and node.op.axes == op.axes
    return same and not node.op.keepdims
