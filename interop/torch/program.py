"""A graph that AOTAutograd made, as a program: weights that stay are constants of it, dense tensors
in another order than their axes say are taken and given as they lie in memory.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from ...graph.importers.aten.expressions import symbol_of
from ...graph.importers.aten.program import (
    Argument,
    ExportedGraph,
    ExportedNode,
    ExportedProgram,
    Known,
    Named,
    RecordedType,
)
from ...graph.importers.fx.reader import FxReader, extent
from ...graph.types import inverse
from .equalities import solved
from .errors import NotForEngines
from .layout import stored_order

Range = tuple[int | None, int | None]
Axis = tuple[int, int]  # which argument of a call, and which of its axes
_CPU = 'model.cpu() and inputs on the CPU; tw.compile(module, "cuda", args=...) is for a GPU.'


@dataclass(frozen=True, slots=True)
class EngineInput:
    """An input of the engine: which argument it is, and the order of its axes in memory."""

    name: str
    argument: int
    order: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class GraphResult:
    """A result of the graph: an output of the engine, in the order of its axes in memory, an
    argument as it came, or a view of one of these; or a number that sizes tell. value, view: of the
    whole and of the view, as FX knows them.
    """

    output: str = ""
    order: tuple[int, ...] | None = None
    value: Any = None
    view: Any = None
    argument: int | None = None
    number: Any = None


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """A program, and how arguments and results of calls are its inputs and outputs.

    told: for each symbol, the axis of an argument that tells it. loose: numbers that no axis tells,
    by argument, with their symbols. same: symbols that are expressions of others.
    """

    program: ExportedProgram
    taken: tuple[EngineInput, ...]
    given: tuple[GraphResult, ...]
    told: Mapping[str, Axis]
    loose: Mapping[int, str]
    same: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TracedGraph:
    """What AOTAutograd hands over. static: which arguments are weights, or buffers; ranges: of its
    symbols; facts: what torch compares before each call, as relations of them.
    """

    name: str
    module: Any
    static: frozenset[int]
    ranges: Mapping[str, Range]
    facts: tuple[Any, ...] = ()


def graph_program(traced: TracedGraph, frozen: Mapping[int, Any]) -> GraphProgram:
    """The program of a graph. frozen: arguments that are constants from now on.

    Raises: ModelError.
    """
    return _Making(traced, frozen).made()


class _Making:
    """One program on its way."""

    def __init__(self, traced: TracedGraph, frozen: Mapping[int, Any]) -> None:
        self.traced, self.frozen = traced, frozen
        nodes = (node for node in traced.module.graph.nodes if node.op == "placeholder")
        self.arguments = {node: number for number, node in enumerate(nodes)}
        self.same = solved(traced.module)
        self.reader = FxReader(same=self.same)
        self.graph = self.reader.graph(traced.module)
        self.types = dict(self.graph.types)
        self.first: list[ExportedNode] = []
        self.last: list[ExportedNode] = []
        self.constants: dict[str, Known] = {}
        self.buffers: dict[str, str] = {}
        self.sizes: dict[str, str] = {}
        self.taken: list[EngineInput] = []
        self.told: dict[str, Axis] = {}
        self.outputs: list[Named] = []
        self.numbers: dict[int, str] = {}
        self.shared: set[Any] = set()  # what more than one result shows

    def made(self) -> GraphProgram:
        for node, number in self.arguments.items():
            self._argument(number, node)
        values = list(self.traced.module.graph.nodes)[-1].args[0]
        roots = Counter(root_of(node) for node in dict.fromkeys(values) if node is not None)
        self.shared = {root for root, count in roots.items() if count > 1}
        given = tuple(self._result(node) for node in values)
        graph = ExportedGraph(
            self.graph.inputs,
            tuple(self.outputs),
            (*self.first, *self.graph.nodes, *self.last),
            self.types,
        )
        program = ExportedProgram(
            self.traced.name,
            graph,
            {**self.constants, **self.reader.known},
            tuple(one.name for one in self.taken),
            tuple(one.name for one in self.outputs),
            self.buffers,
            self.traced.ranges,
            self.sizes,
        )
        loose = {n: one for n, one in self.numbers.items() if one and one not in self.told}
        same = {str(symbol): expression for symbol, expression in self.same.items()}
        return GraphProgram(program, tuple(self.taken), given, self.told, loose, same)

    def _argument(self, number: int, node: Any) -> None:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            text = extent(value, self.same)
            self.sizes[node.name] = str(text)
            self.numbers[number] = symbol_of(text) if isinstance(text, str) else ""
            return
        if value is None or isinstance(value, bool | int | float | str):
            self.constants[node.name] = value
            return
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            where = f"on '{value.device}'" if isinstance(value, torch.Tensor) else ""
            raise NotForEngines(f"argument '{node.name}' is a {type(value).__name__} {where}", _CPU)
        if number in self.frozen:
            self.buffers[node.name] = node.name
            what = f"weight '{node.name}'"
            self.constants[node.name] = self.reader.arrays.read(what, self.frozen[number])
            return
        order = stored_order(value)
        name = node.name
        if order is not None:
            name = f"{node.name}_stored"
            type_ = self.types[node.name]
            self.types[name] = RecordedType(type_.dtype, tuple(type_.shape[a] for a in order))
            self.first.append(_permuted(name, inverse(order), node.name))
        self.taken.append(EngineInput(name, number, order))
        for axis, size in enumerate(value.shape):
            text = extent(size, self.same)
            symbol = symbol_of(text) if isinstance(text, str) else ""
            if symbol:
                self.told.setdefault(symbol, (number, axis))

    def _result(self, node: Any) -> GraphResult:
        if node is None:
            return GraphResult()
        value = node.meta["val"]
        if node in self.arguments:
            return GraphResult(argument=self.arguments[node], value=value)
        if not isinstance(value, torch.Tensor):
            return GraphResult(number=value)
        root = root_of(node)
        if root is not node and (root in self.shared or root in self.arguments):
            kept = self._result(root)
            return replace(kept, view=value)
        order, result = stored_order(value), self.reader.values[node]
        assert isinstance(result, Named)
        name = result.name if order is None else f"{result.name}_stored"
        if Named(name) not in self.outputs:
            self.outputs.append(Named(name))
            if order is not None:
                self.last.append(_permuted(result.name, order, name))
        return GraphResult(output=name, order=order, value=value)


def root_of(node: Any) -> Any:
    """The node whose elements a node shows: itself, or what it is a view, or a part, of."""
    while node.op == "call_function":
        is_part = node.target is operator.getitem
        maker, number = node.args if is_part else (node, 0)
        schema: Any = getattr(maker.target, "_schema", None)
        if schema is None or not schema.returns:
            return node
        shown = schema.returns[number if len(schema.returns) > 1 else 0].alias_info
        if shown is None or shown.is_write:
            return node
        node = maker.args[0]
    return node


def _permuted(name: str, order: tuple[int, ...], made: str) -> ExportedNode:
    arguments: dict[str, Argument] = {"self": Named(name), "dims": order}
    return ExportedNode(made, "aten.permute.default", arguments, (made,))


def at_numbers(
    made: GraphProgram, numbers: Mapping[str, int], ranges: Mapping[str, Range]
) -> GraphProgram:
    """The program with symbols that are known, and what that says of the ranges of others."""
    return replace(made, program=replace(made.program, numbers=numbers, ranges=ranges))
