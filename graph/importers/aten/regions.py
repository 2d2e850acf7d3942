"""cond and while_loop: nodes of a program that hold graphs, as branches and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, RegionOperator
from ...regions.branch import IfElse
from ...regions.loop import ITERATION, Loop
from ..onnx.node import NotSupported
from .program import Argument, ExportedGraph, ExportedNode, Subgraph
from .writer import AtenValue


class NodeScope(Protocol):
    """Where nodes of a program are written to: the model, or a graph within it."""

    builder: GraphBuilder

    def within(self, name: str) -> NodeScope:
        """A graph within this one."""

    def value_of(self, argument: Argument) -> object:
        """What an argument of a node is."""

    def results(self, graph: ExportedGraph, given: Sequence[object]) -> Sequence[object]:
        """What a graph gives of these values, its nodes written here."""


def branches(scope: NodeScope, node: ExportedNode) -> object:
    """cond(pred, true_graph, false_graph, operands)."""
    condition, then, otherwise, operands = _branches(scope, node)
    if isinstance(condition, bool):
        return scope.results(then if condition else otherwise, operands)
    if not isinstance(condition, AtenValue):
        raise NotSupported("its condition is no tensor")
    outside = [one for one in operands if isinstance(one, AtenValue) and not _known(scope, one)]
    then_graph, otherwise_graph = (
        _closed(scope, name, graph, operands)
        for name, graph in (("then", then), ("else", otherwise))
    )
    return _defined(scope, node, IfElse(then_graph, otherwise_graph), (condition, *outside))


def loop(scope: NodeScope, node: ExportedNode) -> object:
    """while_loop(cond_graph, body_graph, carried, additional): carried tensors keep their types."""
    graphs = [one.graph for one in node.arguments.values() if isinstance(one, Subgraph)]
    lists = [one for one in node.arguments.values() if isinstance(one, tuple)]
    if len(graphs) != 2 or not 1 <= len(lists) <= 2:
        raise NotSupported("it is not a condition, a body and what they take")
    carried, more = ([scope.value_of(one) for one in some] for some in (*lists, ())[:2])
    if not all(isinstance(one, AtenValue) for one in carried):
        raise NotSupported("it carries a number; expected tensors alone")
    condition, body = graphs
    (first,) = scope.results(condition, [*carried, *more])
    inner = scope.within("body")
    inner.builder.input("iteration", ITERATION)
    own = [_input(inner, f"carried_{n}", one) for n, one in enumerate(carried)]
    rest, outside = _captured(scope, inner, more)
    made = inner.results(body, [*own, *rest])
    (goes_on,) = inner.results(condition, [*made, *rest])
    op = Loop(_finished(inner, [goes_on, *made]), len(carried), None, False, True)
    return _defined(scope, node, op, (first, *carried, *outside))


def _branches(
    scope: NodeScope, node: ExportedNode
) -> tuple[object, ExportedGraph, ExportedGraph, list[object]]:
    match tuple(node.arguments.values()):
        case (condition, Subgraph(then), Subgraph(otherwise), tuple(operands)):
            taken = [scope.value_of(one) for one in operands]
            return scope.value_of(condition), then, otherwise, taken
    raise NotSupported("it is not a condition, two graphs and what they take")


def _closed(scope: NodeScope, name: str, graph: ExportedGraph, operands: Sequence[object]) -> Graph:
    inner = scope.within(name)
    given, _ = _captured(scope, inner, operands)
    return _finished(inner, inner.results(graph, given))


def _captured(
    scope: NodeScope, inner: NodeScope, values: Sequence[object]
) -> tuple[list[object], list[AtenValue]]:
    """The values within a graph, and those of them that it takes as inputs: not constants."""
    found, outside = list[object](), list[AtenValue]()
    for number, value in enumerate(values):
        if not isinstance(value, AtenValue):
            found.append(value)
        elif _known(scope, value):
            constant = scope.builder.constants[value.value]
            name = inner.builder.constant(f"constant_{number}", constant)
            found.append(AtenValue(name, value.type))
        else:
            found.append(_input(inner, f"operand_{number}", value))
            outside.append(value)
    return found, outside


def _known(scope: NodeScope, value: AtenValue) -> bool:
    return value.value in scope.builder.constants


def _input(inner: NodeScope, name: str, value: object) -> AtenValue:
    assert isinstance(value, AtenValue)
    return AtenValue(inner.builder.input(name, value.type), value.type)


def _finished(inner: NodeScope, results: Sequence[object]) -> Graph:
    outputs = dict[str, str]()
    for number, value in enumerate(results):
        if not isinstance(value, AtenValue):
            raise NotSupported("one of its graphs gives a number; expected tensors alone")
        outputs[inner.builder.fresh(f"result_{number}")] = value.value
    inner.builder.drop_unread_sizes(outputs.values())
    return inner.builder.finish(outputs)


def _defined(
    scope: NodeScope, node: ExportedNode, op: RegionOperator, inputs: Sequence[object]
) -> list[AtenValue]:
    names = [one.value for one in inputs if isinstance(one, AtenValue)]
    types = op.infer(tuple(scope.builder.types[name] for name in names))
    values = [scope.builder.fresh(f"{node.name}.result{n}") for n in range(len(types))]
    scope.builder.add_node(GraphNode(op, tuple(names), tuple(values), node.name))
    return [AtenValue(value, scope.builder.types[value]) for value in values]


REGIONS: Mapping[str, Callable[[NodeScope, ExportedNode], object]] = {
    "cond": branches,
    "while_loop": loop,
}
