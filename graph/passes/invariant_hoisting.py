"""Compute before a loop what each iteration would compute anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...tir.sizes import at_most
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode, RegionOperator, make_graph
from ..ir.views import is_view
from ..regions.inline import add_nodes, expanded
from ..regions.loop import Loop


@dataclass(frozen=True, slots=True)
class InvariantHoisting:
    """Move the nodes of a loop's body that read nothing of the iteration in front of the loop, out
    of inner loops first. What may refuse an index stays in a loop that may not run.
    """

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        return expanded(graph, self._hoisted)

    def _hoisted(self, builder: GraphBuilder, node: GraphNode) -> Sequence[str] | None:
        if not isinstance(node.op, RegionOperator):
            return None
        regions = tuple(map(self, node.op.regions))
        op = node.op
        if any(one is not other for one, other in zip(regions, op.regions, strict=True)):
            op = op.with_regions(regions)
        inputs = node.inputs
        if isinstance(op, Loop) and (found := _invariant(op)):
            op, inputs = _without(builder, op, inputs, found)
        if op is node.op:
            return None
        builder.add_node(GraphNode(op, inputs, node.outputs, node.name))
        return node.outputs


def _invariant(op: Loop) -> list[GraphNode]:
    """The nodes that read only what is the same in each iteration, and of views those alone that
    others of them read.
    """
    same = {*op.taken.captured, *op.body.constants}
    found: list[GraphNode] = []
    for node in op.body.nodes:
        if same.issuperset(node.inputs) and (_always_runs(op) or not _refuses(node)):
            found.append(node)
            same.update(node.outputs)
    wanted: set[str] = set()
    kept = []
    for node in reversed(found):
        if not is_view(node, op.body.types) or not wanted.isdisjoint(node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
    return kept[::-1]


def _always_runs(op: Loop) -> bool:
    if op.count is None or op.counted or op.conditional:
        return False
    return at_most(1, op.count) is True


def _refuses(node: GraphNode) -> bool:
    """Whether a run may end in a refusal of an index because of this node."""
    if isinstance(node.op, RegionOperator):
        return any(_refuses(inner) for region in node.op.regions for inner in region.nodes)
    return node.op.checks_indices


def _without(
    builder: GraphBuilder, op: Loop, inputs: tuple[str, ...], found: Sequence[GraphNode]
) -> tuple[Loop, tuple[str, ...]]:
    """The loop that takes what these nodes compute, which are in the builder then."""
    body, taken, given = op.body, op.taken.captured, op.given(inputs).captured
    names = dict(zip(taken, given, strict=True))
    add_nodes(builder, body, found, names)
    left = [node for node in body.nodes if node not in found]
    made = [value for node in found for value in node.outputs]
    read = {value for node in left for value in node.inputs}.union(body.outputs)
    fresh = [value for value in made if value in read]
    types = {name: body.types[name] for name in (*body.inputs, *fresh)}
    smaller = make_graph(body.name, types, body.outputs, left, body.constants)
    return replace(op, body=smaller), (*inputs, *(names[value] for value in fresh))
