"""Read one graph of an ONNX model into a builder.

A graph within a node, a branch or the body of a loop, is read with the names of the graphs around
it; what it takes from them becomes an input of the node. A node without a rule is read as what its
function says. Nodes that cannot be read are noted, to be refused together; those that no output
needs are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import networkx as nx
import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, ValueInfoProto

from ....tir.errors import InternalError
from ....tir.sizes import SizeError, largest
from ...errors import ModelError, UnsupportedNode, UnsupportedPart
from ...ir.build import GraphBuilder
from ...ir.ir import GraphNode, make_graph
from ...ops.movement import Identity
from ...types import Constant, TensorType
from ..limits import UnsupportedType
from ..symbols import Range
from .functions import FunctionBody, FunctionKey, is_function, local_body, schema_body
from .index_walks import IndexWalk
from .nested import DEEPEST, all_graphs, free_of, reads_of
from .node import SPELLED, LostRegion, NodeReader, NoRule, NotSupported, Region, node_name
from .rules.rule import ImportRule, Several, Values
from .rules.table import find_rule
from .structures import Structure, Value, regrouped, tensors_of
from .tensors import TensorReader

_MOST_HINTS = 16  # that say what a caller may say
_SAID_ELEMENTS = 64  # of an input that a caller may say
TITLE = 200  # characters of a model's name
_NUMBERS = "shapes={...} gives a size that is a number."


@dataclass(slots=True)
class ModelReading:
    """What all graphs of a model have in common. bounds: of the values as large as data say.
    failures: nodes that could not be imported; parts: what else could not.
    """

    opsets: Mapping[str, int]
    tensors: TensorReader
    bounds: Mapping[str, Range]
    functions: Mapping[FunctionKey, FunctionProto]
    failures: list[UnsupportedNode] = field(default_factory=list)
    parts: list[UnsupportedPart] = field(default_factory=list)
    nodes: int = 0

    def count_nodes(self, graph: GraphProto, more: int = 0) -> None:
        """Count the nodes of a graph and of all within it, and so many more.

        Raises: ModelError beyond the limit.
        """
        self.nodes += more + sum(len(one.node) for one in all_graphs(graph))
        most = self.tensors.limits.nodes
        if self.nodes > most:
            raise ModelError(
                f"model: {self.nodes} nodes; expected at most {most}.", code="onnx-nodes"
            )


class GraphReader:
    """A graph of a model on its way into a builder: the model's own, one within a node of another
    one, or the nodes of a function. names: what the values that it may read are called in the
    builder.
    """

    def __init__(
        self,
        proto: GraphProto,
        model: ModelReading,
        builder: GraphBuilder,
        outer: GraphReader | None = None,
        *,
        caller: GraphReader | None = None,
    ) -> None:
        """outer: the graph whose node holds this one, and whose values it may read; with the same
        builder, the nodes become part of that. caller: the graph that the nodes of a function
        become part of.
        """
        self.proto = proto
        self.model = model
        self.builder = builder
        self.outer = outer
        self.names: dict[str, str] = {}
        self.structures: dict[str, Structure] = {}  # values that are no tensors
        self.captured: dict[str, str] = {}  # values of the outer graph -> ours
        around = outer or caller
        self.opsets: Mapping[str, int] = model.opsets if around is None else around.opsets
        self.functions: tuple[str, ...] = () if around is None else around.functions
        inlined = around if around is not None and around.builder is builder else None
        self.is_inlined = inlined is not None
        self.walks: dict[str, IndexWalk] = {} if inlined is None else inlined.walks
        self.lost: set[str] = set()  # values of nodes that could not be imported
        if inlined is None:
            made = {name for node in proto.node for name in node.output}
            read = {name for node in proto.node for name in node.input} if outer is None else set()
            made.update(item.name for item in (*proto.input, *proto.initializer))
            builder.reserved = frozenset(made | read)

    def nodes(self) -> tuple[Value, ...]:
        """Import all nodes that outputs need; what these are in the builder.

        Raises: ModelError where one is not defined, but for the failures of nodes.
        """
        wanted = [item.name for item in self.proto.output]
        nodes = self._sorted()
        for node in nodes:
            if not any(node.output):
                title = f"node '{node_name(node)}' ({node.op_type})"
                raise ModelError(f"model: {title} has no output.", code="onnx-no-output")
        used = set(wanted)
        for node in reversed(nodes):
            if used.intersection(node.output):
                used.update(reads_of(node))
        for node in nodes:
            if used.intersection(node.output):
                self._node(_with_outputs(node, used))
        is_model = self.outer is None and not self.is_inlined
        failed = self.model.failures or self.model.parts
        if self.lost.intersection(wanted) or (is_model and failed):
            return tuple(wanted)
        return tuple(self._output(name) for name in wanted)

    def _output(self, name: str) -> Value:
        if not self._is_known(name):
            raise ModelError(f"model: output '{name}' is not defined.", code="onnx-output")
        return self.value(name)

    def _is_own(self, name: str) -> bool:
        return name in self.names or name in self.structures

    def _is_known(self, name: str) -> bool:
        return self._is_own(name) or (self.outer is not None and self.outer._is_known(name))

    def _is_lost(self, name: str) -> bool:
        if self._is_own(name) or self.outer is None:
            return name in self.lost
        return name in self.lost or self.outer._is_lost(name)

    def value(self, name: str) -> Value:
        """What a value is in the builder; one of an outer graph is taken in."""
        if name in self.names or (name not in self.structures and self.outer is None):
            return self.resolve(name)
        if name not in self.structures:
            assert self.outer is not None, name
            found = self.outer.value(name)
            if isinstance(found, str):
                return self.resolve(name)
            taken = [self._taken(tensor, self.outer.builder) for tensor in tensors_of((found,))]
            (made,) = regrouped((found,), taken)
            assert not isinstance(made, str)
            self.structures[name] = made
        return self.structures[name]

    def resolve(self, name: str) -> str:
        """What a value is called in the builder; one of an outer graph is taken in."""
        if name in self.names:
            return self.names[name]
        assert self.outer is not None, name
        self.names[name] = self._taken(self.outer.resolve(name), self.outer.builder)
        return self.names[name]

    def _taken(self, value: str, outer: GraphBuilder) -> str:
        """What a value of the outer graph is called here."""
        if self.builder is outer:
            return value
        if value not in self.captured:
            name = self.builder.fresh(value)
            if value in outer.constants:
                return self.builder.constant(name, outer.constants[value])
            if value in outer.sizes:
                self.builder.size_values(outer.sizes[value], name, outer.types[value].dtype)
                return name
            self.captured[value] = self.builder.input(name, outer.types[value])
        return self.captured[value]

    def region(self, proto: GraphProto, given: Sequence[TensorType | Constant]) -> Region:
        """A graph within a node of this one. given: what each of its inputs is.

        Raises: LostRegion where a node of it cannot be imported; ModelError.
        """
        title = str(proto.name)[:TITLE]  # bytes where it is not UTF-8
        inner = GraphReader(proto, self.model, GraphBuilder(title), self)
        formals = [item.name for item in proto.input]
        self._check_inputs(proto, len(given))
        for name, value in zip(formals, given, strict=True):
            inner._define_input(name, value)
        inner.constants()
        values = self._all_nodes(inner)
        builder, outputs = inner.builder, tuple(tensors_of(values))
        builder.drop_unread_sizes(outputs)
        graph = make_graph(builder.name, builder.inputs, outputs, builder.nodes, builder.constants)
        return Region(graph, tuple(inner.captured), values)

    def inline(self, proto: GraphProto, given: Sequence[Value] = ()) -> tuple[Value, ...]:
        """The nodes of a graph within a node of this one, as nodes of this one; what its outputs
        are. given: what its inputs are. Raises: as `region`.
        """
        if given:  # an iteration of several
            self.model.count_nodes(proto, 1)
        inner = GraphReader(proto, self.model, self.builder, self)
        formals = [item.name for item in proto.input]
        self._check_inputs(proto, len(given))
        for name, value in zip(formals, given, strict=True):
            inner._set(name, value)
        inner.constants()
        return self._all_nodes(inner)

    def spell(self, proto: NodeProto) -> tuple[str, ...]:
        """What a node of ONNX's own is that reads values of the builder, as nodes of this graph;
        its outputs, which are tensors. Raises: as `region`.
        """
        outputs = [ValueInfoProto(name=name) for name in proto.output]
        graph = GraphProto(name=proto.op_type, node=[proto], output=outputs)
        self.model.count_nodes(graph)
        inner = GraphReader(graph, self.model, self.builder, caller=self)
        inner.opsets = {**self.opsets, "ai.onnx": SPELLED}
        inner.names = {name: name for name in proto.input}
        return tuple(tensors_of(self._all_nodes(inner)))

    def reads_structures(self, proto: GraphProto) -> bool:
        """Whether a graph within a node of this one reads values that are no tensors."""
        return any(not isinstance(self.value(name), str) for name in free_of(proto))

    def _set(self, name: str, value: Value) -> None:
        """Let a value of the model be one that exists."""
        if isinstance(value, str):
            self.names[name] = value
        else:
            self.structures[name] = value

    def _check_inputs(self, proto: GraphProto, given: int) -> None:
        formals = len(proto.input)
        if formals != given:
            title = str(proto.name)[:TITLE]  # bytes where it is not UTF-8
            raise ModelError(
                f"model: the graph '{title}' takes {formals} inputs; its node gives it {given}.",
                code="onnx-region-inputs",
            )

    def _all_nodes(self, inner: GraphReader) -> tuple[Value, ...]:
        failed = len(self.model.failures)
        outputs = inner.nodes()
        if len(self.model.failures) > failed or inner.lost:
            raise LostRegion
        return outputs

    def _define_input(self, name: str, value: TensorType | Constant) -> None:
        own = self.builder.fresh(name) if name in self.builder.types else name
        if isinstance(value, TensorType):
            self.names[name] = self.builder.input(own, value)
        else:
            self.names[name] = self.builder.constant(own, value)

    def constants(self) -> None:
        """Import the initialisers."""
        for tensor in self.proto.initializer:
            what, name = f"initialiser '{tensor.name}'", self._own(tensor.name)
            try:
                self.builder.constant(name, self.model.tensors.read(tensor, what))
                self.names[tensor.name] = name
            except UnsupportedType as error:
                self.lose("initialiser", tensor.name, error)

    def lose(self, kind: str, name: str, error: UnsupportedType, hint: str = "") -> None:
        """Note what cannot be imported, and that what reads it cannot be either."""
        self.model.parts.append(
            UnsupportedPart(kind, name, f"it {error.reason}", hint or error.hint)
        )
        self.lost.add(name)

    def _own(self, name: str) -> str:
        """What a value that this graph defines is called in the builder."""
        return self.builder.fresh(name) if self.is_inlined else name

    def _sorted(self) -> Sequence[NodeProto]:
        """The nodes so that values are defined before use: the model's own order if it is one."""
        makers = {name: i for i, node in enumerate(self.proto.node) for name in node.output if name}
        flow: nx.DiGraph[int] = nx.DiGraph()
        flow.add_nodes_from(range(len(self.proto.node)))
        for i, node in enumerate(self.proto.node):
            for name in reads_of(node):
                if name in makers:
                    flow.add_edge(makers[name], i)
                elif name and not self._is_known(name) and not self._is_lost(name):
                    raise ModelError(
                        f"model: node '{node_name(node)}' ({node.op_type}) reads '{name}', which "
                        "nothing defines.",
                        code="onnx-undefined",
                    )
        if all(a < b for a, b in flow.edges):
            return tuple(self.proto.node)
        try:
            return [self.proto.node[i] for i in nx.lexicographical_topological_sort(flow)]
        except nx.NetworkXUnfeasible as error:
            first = node_name(self.proto.node[min(a for a, _ in nx.find_cycle(flow))])
            raise ModelError(
                f"model: node '{first}' depends on itself.", code="onnx-cycle"
            ) from error

    def _node(self, proto: NodeProto) -> None:
        """Import one node, or note why it cannot be."""
        domain = proto.domain or "ai.onnx"
        opset = self.opsets.get(domain, 0)
        lost = any(map(self._is_lost, reads_of(proto)))
        try:
            self._read(proto, opset, lost)
            if not lost:
                return
        except NotSupported as problem:
            hint = problem.hint or self._said_by_caller(problem.unknown)
            self._fail(proto, domain, opset, str(problem), hint)
        except SizeError as error:
            reason = error.message.removeprefix("sizes: ").rstrip(".")
            self._fail(proto, domain, opset, reason, _NUMBERS)
        except UnsupportedType as error:
            self._fail(proto, domain, opset, str(error), error.hint)
        except LostRegion:
            pass
        self.lost.update(filter(None, proto.output))

    def _said_by_caller(self, unknown: Sequence[str]) -> str:
        """How a caller may say values that would have to be known: what they are computed from,
        where that is small; of the first failures, as it walks the whole graph.
        """
        is_nested = self.outer is not None and not self.is_inlined
        if not unknown or is_nested or len(self.model.failures) >= _MOST_HINTS:
            return ""
        makers = {value: node for node in self.builder.nodes for value in node.outputs}
        reached, left = set[str](), list(unknown)
        while left:
            value = left.pop()
            if value not in reached:
                reached.add(value)
                left += makers[value].inputs if value in makers else ()
        given = self.builder.inputs
        found = [name for name in given if name in reached]
        if not found or any(largest(given[name].elements) > _SAID_ELEMENTS for name in found):
            return ""
        values = ", ".join(f"'{name}': ..." for name in found)
        return f"constants={{{values}}} makes it known when the model is read."

    def _fail(self, proto: NodeProto, domain: str, opset: int, reason: str, hint: str = "") -> None:
        failure = UnsupportedNode(node_name(proto), proto.op_type, domain, opset, reason, hint)
        self.model.failures.append(failure)

    def _read(self, proto: NodeProto, opset: int, lost: bool) -> None:
        """Import one node by its rule, or else as the function that it is. lost: only see whether
        that could be done.

        Raises: NotSupported, LostRegion, ModelError.
        """
        try:
            rule, version = find_rule(proto, opset)
        except NoRule:
            body = None if lost else self._body(proto, opset)
            if body is not None:
                self._expand(proto, body)
            elif not (lost and is_function(proto, opset, self.model.functions)):
                raise
            return
        if not lost:
            self._build(proto, rule, version)

    def _body(self, proto: NodeProto, opset: int) -> FunctionBody | None:
        """What a node is in others, all of whose inputs are known."""
        body = local_body(proto, self.model.functions)
        if body is not None:
            return body
        types, values = self.builder.types, [name and self.value(name) for name in proto.input]
        if any(not isinstance(value, str) for value in values):
            return None
        return schema_body(proto, opset, [types[str(v)] if v else None for v in values])

    def _expand(self, proto: NodeProto, body: FunctionBody) -> None:
        """Import the nodes that a node stands for. Raises: LostRegion, NotSupported, ModelError."""
        if len(proto.output) > len(body.outputs) or len(proto.input) > len(body.inputs):
            raise NotSupported(
                f"it has {len(proto.input)} inputs and {len(proto.output)} outputs, its function "
                f"{len(body.inputs)} and {len(body.outputs)}"
            )
        wanted = {a: f for f, a in zip(body.outputs, proto.output, strict=False) if a}
        outputs = [ValueInfoProto(name=formal) for formal in wanted.values()]
        graph = GraphProto(name=proto.op_type, node=body.nodes, output=outputs)
        self.model.count_nodes(graph)
        inner = GraphReader(graph, self.model, self.builder, caller=self)
        inner.opsets = {**self.opsets, **body.opsets}
        inner.functions = (*self.functions, proto.op_type)
        if len(inner.functions) > DEEPEST:
            raise ModelError(
                f"model: functions call each other more than {DEEPEST} deep, from "
                f"'{inner.functions[0]}' on; expected fewer.",
                code="onnx-function-depth",
            )
        for formal, name in zip_longest(body.inputs, proto.input, fillvalue=""):
            inner._set(formal, name and self.value(name))
        values = self._all_nodes(inner)
        made = self._in_builder(proto)
        reader = self._node_reader(made, 1)
        owns = dict(zip(proto.output, made.output, strict=True))
        for name, value in zip(wanted, values, strict=True):
            self._be(reader, name, owns[name], value)

    def _be(self, reader: NodeReader, name: str, own: str, value: Value) -> None:
        """Let an output of a node be a value that exists. own: what the builder calls it."""
        if isinstance(value, str):
            reader.define(GraphNode(Identity(), (value,), (own,), reader.proto.name))
        else:
            del self.names[name]
            self.structures[name] = value

    def _node_reader(
        self, proto: NodeProto, version: int, values: Sequence[Value] = ()
    ) -> NodeReader:
        bounds = self.model.bounds if self.outer is None else {}
        tensors = self.model.tensors
        return NodeReader(
            proto, version, self.builder, tensors, self, self.walks, bounds, tuple(values)
        )

    def _build(self, proto: NodeProto, rule: ImportRule, version: int) -> None:
        values, names = [name and self.value(name) for name in proto.input], proto.output
        for name, value in zip(proto.input, values, strict=True):
            if not isinstance(value, str) and not rule.takes_structures:
                raise NotSupported(f"its input '{name}' is {value}; expected a tensor")
        proto = self._in_builder(proto)
        reader = self._node_reader(proto, version, values)
        try:
            result = rule.build(reader)
            if isinstance(result, Values):
                for name, own, value in zip(names, proto.output, result.values, strict=False):
                    if name:
                        self._be(reader, name, own, value)
                return
            if isinstance(result, np.ndarray) and result.dtype == object:
                reader.define_sizes(proto.output[0], result.astype(object))
                return
            if not isinstance(result, tuple | Several):
                self.builder.constant(proto.output[0], result)
                return
            if isinstance(result, tuple):
                op, inputs = result
                reader.check_present(inputs)
                reader.define(GraphNode(op, inputs, reader.outputs(op.output_count), proto.name))
                return
            for output, (op, inputs) in zip(proto.output, result.results, strict=False):
                reader.check_present(inputs)
                if output:
                    reader.define(GraphNode(op, inputs, (output,), proto.name))
        except (SizeError, UnsupportedType, NotSupported, LostRegion, MemoryError):
            raise
        except ModelError as error:
            if reader.title not in error.message:
                error.where = error.where or f"in {reader.title}"
            raise
        except Exception as error:
            raise InternalError(
                f"import: the rule of {reader.title} failed: {type(error).__name__}: {error}.",
                code="onnx-rule",
            ) from error

    def _in_builder(self, proto: NodeProto) -> NodeProto:
        """A node whose inputs and outputs are called as in the builder; from here on its outputs
        are there.
        """
        given = [name and self.value(name) for name in proto.input]
        pairs = zip(proto.input, given, strict=True)
        inputs = [value if isinstance(value, str) else name for name, value in pairs]
        outputs = [name and self._own(name) for name in proto.output]
        self.names |= {n: own for n, own in zip(proto.output, outputs, strict=True) if n}
        if inputs == list(proto.input) and outputs == list(proto.output):
            return proto
        made = NodeProto()
        made.CopyFrom(proto)
        made.ClearField("input")
        made.ClearField("output")
        made.input.extend(inputs)
        made.output.extend(outputs)
        return made


def _with_outputs(proto: NodeProto, used: set[str]) -> NodeProto:
    """A node without the names of outputs that nobody reads."""
    if used.issuperset(filter(None, proto.output)):
        return proto
    made = NodeProto()
    made.CopyFrom(proto)
    for number, name in enumerate(made.output):
        made.output[number] = name if name in used else ""
    return made
