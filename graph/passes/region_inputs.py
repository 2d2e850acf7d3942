"""Give regions what is constant, and leave out what they do not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ..ir.ir import Graph, GraphNode, RegionOperator, has_regions, make_graph, rebuilt
from ..ir.views import storage
from ..regions.loop import Loop


@dataclass(frozen=True, slots=True)
class RegionInputs:
    """Let a constant that a region takes from the graph around it be a constant of the region, so
    that passes find it there; take no more than is read; read what a loop carries and no iteration
    changes as it was before.
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(has_regions)

    def __call__(self, graph: Graph) -> Graph:
        nodes, same = list[GraphNode](), dict[str, str]()
        for node in graph.nodes:
            inputs = tuple(same.get(value, value) for value in node.inputs)
            moved = node if inputs == node.inputs else replace(node, inputs=inputs)
            if isinstance(moved.op, Loop):
                moved = _without_fixed(graph, moved, moved.op, same)
            if isinstance(moved.op, RegionOperator):
                moved = self._taking_less(graph, moved, moved.op)
            nodes.append(moved)
        return rebuilt(graph, nodes, graph.constants)

    def _taking_less(self, graph: Graph, node: GraphNode, op: RegionOperator) -> GraphNode:
        """The node whose regions hold the constants that it takes, treated alike in their turn."""
        captured = node.inputs[op.first_captured :]
        kept = [
            n
            for n, value in enumerate(captured)
            if value not in graph.constants
            and any(_is_read(region, _taken(region, captured)[n]) for region in op.regions)
        ]
        regions = tuple(self(_taking(graph, region, captured, kept)) for region in op.regions)
        if all(one is other for one, other in zip(regions, op.regions, strict=True)):
            return node
        inputs = (*node.inputs[: op.first_captured], *(captured[n] for n in kept))
        return replace(node, op=op.with_regions(regions), inputs=inputs)


def _taken(region: Graph, captured: Sequence[str]) -> tuple[str, ...]:
    """What the values that a region takes from the graph around it are called in it."""
    return region.inputs[len(region.inputs) - len(captured) :]


def _is_read(region: Graph, value: str) -> bool:
    return value in region.outputs or any(value in node.inputs for node in region.nodes)


def _taking(graph: Graph, region: Graph, captured: Sequence[str], kept: Sequence[int]) -> Graph:
    """The region with those of the values that it takes, and the constants among the others."""
    if len(kept) == len(captured):
        return region
    own = _taken(region, captured)
    dropped = {own[n] for n in range(len(own)) if n not in kept}
    held = {
        name: graph.constants[value]
        for name, value in zip(own, captured, strict=True)
        if value in graph.constants
    }
    inputs = {name: region.types[name] for name in region.inputs if name not in dropped}
    constants = {**region.constants, **held}
    return make_graph(region.name, inputs, region.outputs, region.nodes, constants)


def _without_fixed(graph: Graph, node: GraphNode, op: Loop, same: dict[str, str]) -> GraphNode:
    """The loop without the carried values that no iteration changes; `same` says what they are."""
    given, taken, made = op.given(node.inputs), op.taken, op.made
    roots = storage(op.body)
    fixed = [
        n
        for n, (now, later) in enumerate(zip(taken.carried, made.carried, strict=True))
        if roots[later] == now
        and op.body.types[later] == op.body.types[now]
        and node.outputs[n] not in graph.outputs
    ]
    if not fixed:
        return node
    left = [n for n in range(op.carried) if n not in fixed]
    assert taken.count is not None
    order = (
        taken.count,
        *(taken.carried[n] for n in left),
        *taken.rows,
        *taken.captured,
        *(taken.carried[n] for n in fixed),
    )
    outputs = (
        *(name for name in (made.condition,) if name is not None),
        *(made.carried[n] for n in left),
        *made.rows,
    )
    types = {name: op.body.types[name] for name in order}
    body = make_graph(op.body.name, types, outputs, op.body.nodes, op.body.constants)
    first = node.inputs[: op.first_captured - op.carried - len(op.rows)]
    inputs = (
        *first,
        *(given.carried[n] for n in left),
        *given.rows,
        *given.captured,
        *(given.carried[n] for n in fixed),
    )
    same.update((node.outputs[n], given.carried[n]) for n in fixed)
    results = tuple(v for n, v in enumerate(node.outputs) if n not in fixed)
    if not results:
        return node
    return GraphNode(replace(op, body=body, carried=len(left)), inputs, results, node.name)
