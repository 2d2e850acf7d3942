"""Check that a Graph is what graph/ir/ir.py says; else the pass that made it is wrong."""

from __future__ import annotations

from ...tir.errors import InternalError
from ...tir.sizes import dims_in
from ..errors import ModelError, OperatorError
from ..extensions.operators import declaration_of
from ..extensions.origin import is_ours
from ..ops.data_size import DataSize
from ..ops.registry import OPERATORS
from ..types import type_of
from .data_dims import dims_taken
from .ir import Graph, GraphNode, RegionOperator


def verify(graph: Graph) -> None:
    """Raise InternalError unless values are defined once, before use, with inferred types.

    Raises: OperatorError for an operator of others that nobody declared.
    """
    defined = set(graph.inputs)
    if len(defined) != len(graph.inputs):
        _refuse(graph, "an input is listed twice")
    for name, constant in graph.constants.items():
        if name in defined:
            _refuse(graph, f"'{name}' is an input and a constant")
        if graph.types[name] != type_of(constant):
            _refuse(graph, f"constant '{name}' is {type_of(constant)} and not {graph.types[name]}")
        defined.add(name)
    told = {*graph.dims}
    for node in graph.nodes:
        if isinstance(node.op, DataSize):
            told.update(dims_in((node.op.size,)))
        if isinstance(node.op, RegionOperator):
            for region in node.op.regions:
                verify(region)
        elif type(node.op) not in OPERATORS:
            _check_operator(graph, node)
        if missing := [value for value in node.inputs if value not in defined]:
            _refuse(graph, f"{node.title} reads '{missing[0]}' before it is defined")
        for n, value in enumerate(node.outputs):
            if value in defined or value in node.outputs[:n]:
                _refuse(graph, f"{node.title} defines '{value}' again")
        try:
            inferred = node.infer(graph.types)
        except ModelError as error:
            _refuse(graph, f"{node.title} does not fit its inputs: {error.message}")
        for value, type_ in zip(node.outputs, inferred, strict=True):
            if graph.types.get(value) != type_:
                _refuse(
                    graph,
                    f"{node.title} computes '{value}' as {type_} and not {graph.types.get(value)}",
                )
        for dim in dims_taken(node, graph.types):
            if dim not in told:
                _refuse(graph, f"{node.title} has the size '{dim.name}', which nothing tells yet")
        defined.update(node.outputs)
    if missing := [value for value in graph.outputs if value not in defined]:
        _refuse(graph, f"output '{missing[0]}' is not defined")
    if unused := set(graph.types) - defined:
        _refuse(graph, f"'{min(unused)}' has a type and no definition")


def _check_operator(graph: Graph, node: GraphNode) -> None:
    """Refuse an operator of others that is not declared, or that has no hash: equal ones are one.

    Raises: OperatorError; InternalError for one of ours.
    """
    kind, declared = type(node.op), declaration_of(type(node.op))
    if declared is not None:
        try:
            hash(node.op)
        except TypeError as error:
            raise OperatorError(
                f"verify: graph '{graph.name}': {node.title} holds {declared}, which has no hash: "
                f"{error}.",
                code="operator-hash",
                hints=("fields are numbers, texts and tuples of them: a tuple for a list.",),
            ) from error
        return
    if is_ours(kind):
        _refuse(graph, f"{node.title} is not one of the core operators")
    name = kind.__name__
    raise OperatorError(
        f"verify: graph '{graph.name}': {node.title} holds {kind.__module__}.{kind.__qualname__}, "
        "which nobody declared; expected one of tilewright's operators, or a declared one.",
        code="operator-unknown",
        hints=(f'@tw.operator("my.ops::{name}") above the class declares it.',),
    )


def _refuse(graph: Graph, problem: str) -> None:
    raise InternalError(f"verify: graph '{graph.name}': {problem}.", code="graph-verify")
