"""Import a program of aten operators into a Graph: rules write what each node is, and what they
infer is compared with what the exporter recorded.

What only says something about other values makes no node: sizes are numbers of the importer, a view
of a tensor that is written to is refused where somebody could see the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ....tir.errors import TilewrightError
from ....tir.sizes import AnySize, SizeError, dims_in, same
from ...assumed_sizes import telling_assumed
from ...errors import ModelError, UnsupportedNode, UnsupportedPart, in_numbers, unsupported
from ...extensions.operators import Declaration
from ...ir.build import GraphBuilder
from ...ir.ir import Graph
from ...types import Shape, SymbolicSize, type_of
from ..given import given_constants
from ..limits import ImportLimits, UnsupportedType, checked_type
from ..onnx.graph_reader import TITLE, GraphReader
from ..onnx.node import LostRegion, NotSupported
from ..onnx.tensors import TensorReader
from ..recorded_sizes import note_symbols, outside_recorded, with_recorded
from ..size_texts import UnknownSize
from ..symbols import Declared, Shapes, resolve, unnamed
from ..tensor_writer import started_reader
from .aliases import Aliases, WrittenView
from .expressions import size_from, symbol_of
from .program import (
    Argument,
    ExportedGraph,
    ExportedNode,
    ExportedProgram,
    Known,
    Named,
    Output,
    RecordedType,
    Subgraph,
)
from .regions import REGIONS
from .rule import NO_VALUES
from .rules.of_others import check_not_ours, rule_of_others
from .rules.table import RULES, rule_name
from .writer import AtenValue, AtenWriter

_REPORT = "if torch.export.save wrote it, this is a defect of tilewright: please report it."
# what a rule raises on arguments that the operator's schema does not have
_WRONG = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_INLINED = "wrap_with_set_grad_enabled", "wrap_with_autocast"
Value = AtenValue | AnySize | float | str | None | Sequence["Value"]


class _Lost(Exception):
    """A node reads what could not be imported."""


def import_program(
    program: ExportedProgram,
    *,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    limits: ImportLimits | None = None,
) -> Graph:
    """The Graph of a program.

    shapes: sizes that it leaves open, by input {"x": (1, 3, 224, 224)} or by the exporter's symbol
    {"s77": (1, 8, 64)}; else the bounds that it recorded, and assumed ones where it has none.
    constants: the values of inputs, which are none from then on.
    Raises: UnsupportedOperator with every node that we cannot import, ModelError for everything
    else that is wrong.
    """
    return _Importer(program, limits or ImportLimits()).run(shapes, constants)


@dataclass
class _Importer:
    """One program on its way into a builder. values: what its names are."""

    program: ExportedProgram
    limits: ImportLimits
    values: dict[str, Value] = field(default_factory=dict)
    symbols: dict[str, AnySize] = field(default_factory=dict)
    failures: list[UnsupportedNode] = field(default_factory=list)
    parts: list[UnsupportedPart] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    declared: dict[str, Declaration] = field(default_factory=dict)  # by others, by target

    def __post_init__(self) -> None:
        self.tensors = TensorReader(None, self.limits)
        self.builder = GraphBuilder(self.program.name[:TITLE] or "model")
        reserved = frozenset((*self.program.inputs, *self.program.outputs))
        self.reader: GraphReader = started_reader(self.tensors, self.builder, reserved)
        self.aliases = Aliases()
        self.symbols.update(self.program.numbers)

    def run(self, shapes: Shapes | None, constants: Mapping[str, object] | None) -> Graph:
        """The whole program."""
        for name, value in self.program.constants.items():
            self._constant(name, value)
        declared = self._declared()
        known = given_constants(declared, constants)
        for item in declared:
            if item.name in known:
                array = known[item.name]
                value = self.builder.constant(item.name, array)
                self.values[item.name] = AtenValue(value, type_of(array))
                note_symbols(item, array.shape, self.symbols)
        declared = [item for item in declared if item.name not in known]
        resolved = resolve(declared, with_recorded(declared, shapes, self.program.ranges))
        for item in declared:
            note_symbols(item, resolved[item.name], self.symbols)
        resolved = {item.name: self._derived(item, resolved[item.name]) for item in declared}
        with telling_assumed(dims_in(size for shape in resolved.values() for size in shape)):
            for item in declared:
                self._input(item, resolved[item.name])
            self._check_ranges()
            self._sizes()
            self._nodes(self.program.graph)
            return self._finished()

    def _constant(self, name: str, value: Known) -> None:
        if not isinstance(value, np.ndarray):
            self.values[name] = value
            return
        called = self.program.buffers.get(name, name)
        what = f"constant '{called}'"
        try:
            type_ = checked_type(what, value.dtype.name, value.shape, self.limits)
        except UnsupportedType as error:
            self._lose("constant", called, error, name)
            return
        self.tensors.account.store(what, type_)
        own = self.builder.constant(self.builder.fresh(called), value)
        self.values[name] = AtenValue(own, type_)

    def _lose(self, kind: str, name: str, error: UnsupportedType, value: str) -> None:
        self.parts.append(UnsupportedPart(kind, name, f"it {error.reason}"))
        self.lost.add(value)

    def _declared(self) -> list[Declared]:
        found = list[Declared]()
        for name in self.program.inputs:
            type_ = self.program.graph.types.get(name)
            if type_ is None:
                raise ModelError(
                    f"model: input '{name}' is no tensor; expected tensors alone.",
                    code="aten-input",
                    hints=("a number that a call decides may be a tensor without axes.",),
                )
            dims = tuple(self._declared_dim(name, axis, e) for axis, e in enumerate(type_.shape))
            found.append(Declared(name, type_.dtype, dims))
        return found

    def _declared_dim(self, name: str, axis: int, extent: int | str) -> int | SymbolicSize:
        if isinstance(extent, int):
            return extent
        symbol = _understood(name, extent)
        return SymbolicSize(symbol) if symbol else unnamed(name, axis)

    def _derived(self, item: Declared, shape: Shape) -> Shape:
        """The shape of an input, with the axes whose sizes are computed from those of others."""
        found = list(shape)
        for axis, extent in enumerate(self.program.graph.types[item.name].shape):
            if not isinstance(extent, str) or item.dims is None:
                continue
            if item.dims[axis] != unnamed(item.name, axis):
                continue
            try:
                size = size_from(extent, self.symbols)
            except UnknownSize as problem:
                raise ModelError(
                    f"model: axis {axis} of input '{item.name}' is computed from other sizes: "
                    f"{extent}: {problem}; expected symbols that are sizes of inputs themselves.",
                    code="aten-derived-axis",
                    hints=("export it with a Dim of its own for that axis.",),
                ) from problem
            if isinstance(shape[axis], int) and shape[axis] != size:
                raise ModelError(
                    f"shapes: axis {axis} of input '{item.name}' is {shape[axis]}; expected "
                    f"{size}, which other sizes say.",
                    code="aten-derived-size",
                )
            found[axis] = size
        return tuple(found)

    def _input(self, item: Declared, shape: Shape) -> None:
        try:
            type_ = checked_type(f"input '{item.name}'", item.dtype, shape, self.limits)
        except UnsupportedType as error:
            self._lose("input", item.name, error, item.name)
            return
        self.values[item.name] = AtenValue(self.builder.input(item.name, type_), type_)

    def _sizes(self) -> None:
        """Inputs that are sizes: what the axes of others tell."""
        for name, text in self.program.sizes.items():
            try:
                self.values[name] = size_from(text, self.symbols)
            except UnknownSize as problem:
                raise ModelError(
                    f"model: the size '{name}' is {problem}; expected one that the axes of inputs "
                    "tell.",
                    code="aten-size",
                    hints=("a number that a call decides may be a tensor without axes.",),
                ) from problem

    def _check_ranges(self) -> None:
        """A program says for which sizes it holds."""
        for problem in outside_recorded(self.symbols, self.program.ranges):
            raise ModelError(
                f"shapes: {problem}.",
                code="aten-range",
                hints=("torch.export.Dim(name, min=..., max=...) says for which sizes.",),
            )

    def _nodes(self, graph: ExportedGraph) -> None:
        """All nodes, in order."""
        if len(graph.nodes) > self.limits.nodes:
            raise ModelError(
                f"model: {len(graph.nodes)} nodes; expected at most {self.limits.nodes}.",
                code="aten-nodes",
            )
        self.aliases.start(graph)
        for position, node in enumerate(graph.nodes):
            self._node(node, graph, position)

    def _node(self, node: ExportedNode, graph: ExportedGraph, position: int) -> None:
        try:
            self._bind(node, graph, self._result(node, position))
            return
        except _Lost:
            pass
        except (NotSupported, WrittenView) as problem:
            self._fail(node, str(problem), getattr(problem, "hint", ""))
        except SizeError as error:
            self._fail(node, error.message.removeprefix("sizes: ").rstrip("."))
        except (UnsupportedType, UnknownSize) as error:
            self._fail(node, str(error))
        except LostRegion:
            self._told(node)
        except ModelError as error:
            error.where = error.where or f"in {_title(node)}"
            raise
        self.lost.update(_names(node.outputs))

    def _fail(self, node: ExportedNode, reason: str, hint: str = "") -> None:
        domain, _, operator = node.target.partition(".")
        place = " at ".join(filter(None, (node.module, node.line)))
        self.failures.append(
            UnsupportedNode(node.name, operator, domain, None, reason, hint, place)
        )

    def _told(self, node: ExportedNode) -> None:
        """Failures of operators of ONNX that a rule spelled are the node's."""
        for failure in self.reader.model.failures:
            self._fail(node, f"{failure.operator}: {failure.reason}", failure.hint)
        self.reader.model.failures.clear()

    def _result(self, node: ExportedNode, position: int) -> Value:
        name = rule_name(node.target)
        higher = name.rpartition(".")[2]
        if higher in _INLINED:
            return self._inlined(node)
        if higher in REGIONS and name != higher:
            return cast("Value", REGIONS[higher](self, node))
        written = self.aliases.written(node, position)
        rule = RULES.get(self.aliases.pure(name) if written else name)
        without = NO_VALUES
        if rule is not None:
            check_not_ours(node.target)
        else:
            rule, declared = rule_of_others(node.target)
            without, self.declared[node.target] = frozenset(), declared
            if not node.outputs:
                raise NotSupported("it has no output, so it writes to an argument")
        given = node.arguments.items()
        arguments = {key: self._argument(one) for key, one in given if key not in without}
        read = [
            n for n, one in enumerate(node.outputs) if any(map(self.aliases.is_read, _names([one])))
        ]
        results = max(read, default=0) + 1
        writer = AtenWriter(node.name, node.target, self.reader, self.tensors, results)
        try:
            result: Value = rule(writer, **arguments)
        except TilewrightError:
            raise
        except _WRONG as error:
            raise ModelError(
                f"model: the rule of {_title(node)} failed on its arguments: "
                f"{type(error).__name__}: {error}.",
                code="aten-rule",
                hints=(_REPORT,),
            ) from error
        before = self.values.get(written)
        if isinstance(before, AtenValue) and isinstance(result, AtenValue):
            result = writer.cast(result, before.dtype)  # what is written to keeps its type
            self.values[written] = result
        return result

    def _argument(self, value: Argument) -> Value:
        match value:
            case Named(name):
                if name in self.lost:
                    raise _Lost
                if name not in self.values and name in self.program.constants:
                    self._constant(name, self.program.constants[name])
                if name not in self.values:
                    raise ModelError(
                        f"model: '{name}' is read, and nothing defines it.", code="aten-undefined"
                    )
                return self.values[name]
            case tuple():
                return [self._argument(one) for one in value]
            case Subgraph():
                raise NotSupported("it runs a graph of its own")
            case _:
                return value

    def _inlined(self, node: ExportedNode) -> Value:
        """The nodes of a graph that only runs in another mode."""
        graphs = [one.graph for one in node.arguments.values() if isinstance(one, Subgraph)]
        given = [one for one in node.arguments.values() if isinstance(one, Named)]
        if len(graphs) != 1 or len(given) != len(graphs[0].inputs):
            raise NotSupported("it is not one graph with its inputs")
        return self.results(graphs[0], [self._argument(one) for one in given])

    def results(self, graph: ExportedGraph, given: Sequence[object]) -> list[Value]:
        """What a graph within a node gives of these values."""
        for formal, actual in zip(graph.inputs, given, strict=True):
            self.values[formal] = cast("Value", actual)
        self._nodes(graph)
        return [self._argument(one) for one in graph.outputs]

    def value_of(self, argument: Argument) -> Value:
        """What an argument of a node is."""
        return self._argument(argument)

    def within(self, name: str) -> _Importer:
        """Where the nodes of a graph within this one are written to."""
        inner = _Importer(self.program, self.limits, symbols=self.symbols)
        inner.failures, inner.parts, inner.lost = self.failures, self.parts, self.lost
        inner.tensors.account, inner.builder.name = self.tensors.account, name
        return inner

    def _bind(self, node: ExportedNode, graph: ExportedGraph, result: Value) -> None:
        """Let the outputs of a node be what its rule gives: a value, some, or a list of values."""
        outputs, results = node.outputs, [result]
        if len(outputs) > 1 and isinstance(result, Sequence):
            results = list(result)
        elif len(outputs) == 1 and isinstance(result, list) and len(result) == 1:
            results = result if not isinstance(outputs[0], tuple) else results
        for output, value in zip(outputs, results, strict=False):
            names, values = _pairs(output, value)
            if len(names) != len(values):
                raise ModelError(
                    f"model: {_title(node)} has {len(names)} values; its rule gives {len(values)}.",
                    code="aten-outputs",
                    hints=(self._whose(node),),
                )
            for own, one in zip(names, values, strict=True):
                self._define(node, graph, own, one)

    def _define(self, node: ExportedNode, graph: ExportedGraph, name: str, value: Value) -> None:
        recorded = graph.types.get(name)
        if recorded is not None and isinstance(value, AtenValue):
            self._check_type(node, value, recorded)
        self.values[name] = value

    def _check_type(self, node: ExportedNode, value: AtenValue, recorded: RecordedType) -> None:
        """What a rule infers is what the exporter recorded; sizes may be written in another way."""
        fits = value.dtype == recorded.dtype and value.rank == len(recorded.shape)
        if fits:
            self._meet(value.shape, recorded)
        wanted = [
            size_from(extent, self.symbols) if isinstance(extent, str) else extent
            for extent in recorded.shape
        ]
        if fits:
            pairs = zip(value.shape, wanted, strict=True)
            fits = all(same(own, other) is not False for own, other in pairs)
        if not fits:
            listed = ", ".join(map(str, wanted))
            raise ModelError(
                f"model: {_title(node)} is {value.type}; the exporter recorded "
                f"{recorded.dtype}[{listed}].",
                code="aten-type",
                hints=(self._whose(node),),
            )

    def _whose(self, node: ExportedNode) -> str:
        """What is wrong where a rule contradicts the exporter."""
        declared = self.declared.get(node.target)
        if declared is None:
            return _REPORT
        return f"{declared} and its declaration in torch.library contradict each other."

    def _meet(self, shape: Shape, recorded: RecordedType) -> None:
        """A symbol that no input has is a size that data decide: the first result says which."""
        for size, extent in zip(shape, recorded.shape, strict=True):
            symbol = symbol_of(extent) if isinstance(extent, str) else ""
            if symbol:
                self.symbols.setdefault(symbol, size)

    def _finished(self) -> Graph:
        if self.failures or self.parts:
            failed, total = len(self.failures), len(self.program.graph.nodes)
            what = in_numbers(self.parts, f"{failed} of {total} nodes" if failed else "")
            raise unsupported(what, self.failures, self.parts, code="aten-unsupported")
        outputs = dict[str, str]()
        for name, argument in zip(self.program.outputs, self._outputs(), strict=True):
            if not isinstance(argument, AtenValue):
                raise ModelError(
                    f"model: output '{name}' is {argument}, no tensor; expected tensors alone.",
                    code="aten-output",
                )
            outputs[name] = argument.value
        self.builder.drop_unread_sizes(outputs.values())
        return self.builder.finish(outputs)

    def _outputs(self) -> Iterable[object]:
        return (self._argument(one) for one in self.program.graph.outputs)


def _understood(name: str, text: str) -> str:
    try:
        return symbol_of(text)
    except UnknownSize as problem:
        raise ModelError(
            f"model: a size of input '{name}' is {problem}; expected an expression of sizes.",
            code="aten-expression",
        ) from problem


def _pairs(output: Output, value: Value) -> tuple[Sequence[str], Sequence[Value]]:
    """The names of an output and what they stand for."""
    if isinstance(output, tuple):
        return output, value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return ((), ()) if output is None else ((output,), (value,))


def _names(outputs: Iterable[object]) -> Iterable[str]:
    for output in outputs:
        if isinstance(output, tuple):
            yield from output
        elif isinstance(output, str):
            yield output


def _title(node: ExportedNode) -> str:
    return f"node '{node.name}' ({node.target})"
