"""Import an ONNX model, opset 7 to the newest that the onnx package knows, into a Graph.

The model is not trusted: sizes are compared with limits before memory is allocated, external data
is read from the model's folder only, and whatever is wrong is a ModelError. Nodes that we have no
operator for are refused together. A graph within a node, a branch or the body of a loop, is read
with the names of the graphs around it; what it takes from them becomes an input of the node.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import networkx as nx
import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from ....runtime.files.regular_file import open_regular
from ....tir.errors import InternalError
from ....tir.sizes import SizeError, dims_in
from ...assumed_sizes import telling_assumed
from ...errors import ModelError, ModelFileError, UnsupportedNode, UnsupportedOperator
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode, make_graph
from ...types import Constant, SymbolicSize, TensorType
from .bounds import data_bounds
from .index_walks import IndexWalk
from .limits import ImportLimits, checked_type
from .nested import all_graphs, reads_of
from .node import LostRegion, NodeReader, NotSupported, Region, attribute_names, node_name
from .rules.rule import ImportRule, Several
from .rules.table import RULES
from .symbols import Declared, Range, Shapes, resolve, unnamed
from .tensors import TensorReader, dtype_name

OLDEST_OPSET = 7
_TITLE = 200  # characters of a model's name
Source = str | os.PathLike[str] | bytes | ModelProto


def import_onnx(
    model: Source, *, shapes: Shapes | None = None, limits: ImportLimits | None = None
) -> Graph:
    """The Graph of an ONNX model.

    model: a path, the bytes of a file, or a ModelProto; external data needs a path.
    shapes: sizes that the model leaves open, by input {"x": (1, 3, 224, 224)} or by symbol
    {"batch": 1}; bounds are assumed for the others.
    Raises: ModelFileError when a file cannot be read, UnsupportedOperator with every node that we
    cannot import, ModelError for everything else that is wrong with the model.
    """
    bounds = limits or ImportLimits()
    proto, folder = _parsed(model, bounds)
    return _import_model(proto, TensorReader(folder, bounds), shapes)


def _parsed(model: Source, limits: ImportLimits) -> tuple[ModelProto, Path | None]:
    """The model and the folder that its external data may lie in."""
    folder = None
    named = "the bytes"
    if isinstance(model, ModelProto):
        return model, None
    if isinstance(model, bytes):
        data = model
    else:
        path = Path(model)
        folder = path.parent
        named = f"file '{model}'"
        data = _read(path, limits)
    if not data:
        raise ModelError(
            f"model: {named} is empty; expected an ONNX model.",
            code="onnx-empty",
            hints=("torch.onnx.export(module, inputs, 'model.onnx') writes one.",),
        )
    proto = ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise ModelError(
            f"model: {named} cannot be read as an ONNX model; expected one.",
            code="onnx-bytes",
            hints=("torch.onnx.export(module, inputs, 'model.onnx') writes one.",),
        ) from error
    return proto, folder


def _read(path: Path, limits: ImportLimits) -> bytes:
    """The bytes of a regular file of at most `limits.file_bytes`."""
    try:
        with open_regular(path) as file:
            if file is None:
                raise ModelFileError(
                    f"model: file '{path}' cannot be read: it is not a regular file.",
                    code="onnx-file-kind",
                )
            size = os.fstat(file.fileno()).st_size
            if size > limits.file_bytes:
                raise ModelFileError(
                    f"model: file '{path}' has {size} bytes; expected at most {limits.file_bytes}.",
                    code="onnx-file-size",
                )
            return file.read(size)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelFileError(
            f"model: file '{path}' cannot be read: {reason}.", code="onnx-file"
        ) from error


@dataclass(slots=True)
class _Model:
    """What all graphs of a model have in common. bounds: of the values as large as data say.
    failures: nodes that could not be imported.
    """

    opsets: Mapping[str, int]
    tensors: TensorReader
    bounds: Mapping[str, Range]
    failures: list[UnsupportedNode] = field(default_factory=list)


def _import_model(proto: ModelProto, tensors: TensorReader, shapes: Shapes | None) -> Graph:
    """The whole model."""
    if not proto.HasField("graph"):
        raise ModelError("model: it has no graph.", code="onnx-graph")
    opsets = {item.domain or "ai.onnx": item.version for item in proto.opset_import}
    bounds, shapes = data_bounds(proto.graph, shapes)
    model = _Model(opsets, tensors, bounds)
    _check_header(proto.graph, model)
    # nobody calls a model by its name: a long one is cut
    builder = GraphBuilder((proto.graph.name or "model")[:_TITLE])
    reader = _GraphReader(proto.graph, model, builder)
    reader.constants()
    declared = [_declared(item) for item in proto.graph.input if item.name not in reader.names]
    names = [item.name for item in declared]
    if len(set(names)) != len(names):
        raise ModelError(f"model: inputs are {names}; expected distinct names.", code="onnx-inputs")
    resolved = resolve(declared, shapes)
    with telling_assumed(dims_in(size for shape in resolved.values() for size in shape)):
        for item in declared:
            type_ = checked_type(
                f"input '{item.name}'", item.dtype, resolved[item.name], tensors.limits
            )
            builder.input(item.name, type_)
            reader.names[item.name] = item.name
        outputs = reader.nodes()
    return _finished(reader, outputs)


def _finished(reader: _GraphReader, outputs: tuple[str, ...]) -> Graph:
    """The graph of a model whose nodes were read. Raises: UnsupportedOperator, ModelError."""
    model, builder, proto = reader.model, reader.builder, reader.proto
    if model.failures:
        raise UnsupportedOperator(
            f"model: {len(model.failures)} of {_count(proto)} nodes cannot be imported.",
            tuple(model.failures),
            code="onnx-unsupported",
        )
    if not outputs or len(set(outputs)) != len(outputs):
        raise ModelError(
            f"model: outputs are {list(outputs)}; expected distinct names.", code="onnx-outputs"
        )
    builder.drop_unread_sizes(outputs)
    return builder.finish(outputs)


def _check_header(graph: GraphProto, model: _Model) -> None:
    newest, limits = onnx.defs.onnx_opset_version(), model.tensors.limits
    opset = model.opsets.get("ai.onnx")
    if opset is None or not OLDEST_OPSET <= opset <= newest:
        got = "none" if opset is None else str(opset)
        raise ModelError(
            f"model: opset of ai.onnx is {got}; expected {OLDEST_OPSET} to {newest}.",
            code="onnx-opset",
            hints=(
                "onnx.version_converter.convert_version(model, 17) gives an old model opset "
                "17; "
                "a newer onnx package knows newer opsets.",
            ),
        )
    for text in (graph.name, *_texts(graph)):
        if type(text) is not str:  # protobuf gives bytes for what is not UTF-8
            raise ModelError(f"model: the name {text!r} is not UTF-8 text.", code="onnx-text")
    most = limits.name_characters
    for text in _texts(graph):
        if len(text) > most:
            raise ModelError(
                f"model: the name '{text[:40]}...' has {len(text)} characters; expected at "
                f"most {most}.",
                code="onnx-name",
            )
    count = _count(graph)
    if count > limits.nodes:
        raise ModelError(
            f"model: {count} nodes; expected at most {limits.nodes}.", code="onnx-nodes"
        )
    if any(one.sparse_initializer for one in all_graphs(graph)):
        raise ModelError(
            "model: it has sparse initialisers, which are not supported.", code="onnx-sparse"
        )


def _count(graph: GraphProto) -> int:
    return sum(len(one.node) for one in all_graphs(graph))


class _GraphReader:
    """A graph of a model on its way into a builder: the model's own, or one within a node of
    another one. names: what the values that it may read are called in the builder.
    """

    def __init__(
        self,
        proto: GraphProto,
        model: _Model,
        builder: GraphBuilder,
        outer: _GraphReader | None = None,
    ) -> None:
        """outer: the graph whose node holds this one; with the same builder, the nodes become part
        of that.
        """
        self.proto = proto
        self.model = model
        self.builder = builder
        self.outer = outer
        self.names: dict[str, str] = {}
        self.captured: dict[str, str] = {}  # values of the outer graph -> ours
        inlined = outer if outer is not None and outer.builder is builder else None
        self.walks: dict[str, IndexWalk] = {} if inlined is None else inlined.walks
        self.lost: set[str] = set()  # values of nodes that could not be imported
        if inlined is None:
            made = {name for node in proto.node for name in node.output}
            read = {name for node in proto.node for name in node.input} if outer is None else set()
            made.update(item.name for item in (*proto.input, *proto.initializer))
            builder.reserved = frozenset(made | read)

    def nodes(self) -> tuple[str, ...]:
        """Import all nodes; what the outputs are called in the builder.

        Raises: ModelError where one is not defined, but for the failures of nodes.
        """
        used = {name for node in self.proto.node for name in reads_of(node)}
        wanted = [item.name for item in self.proto.output]
        for node in self._sorted():
            self._node(node, used.union(wanted))
        if self.lost.intersection(wanted) or (self.outer is None and self.model.failures):
            return tuple(wanted)
        return tuple(self._output(name) for name in wanted)

    def _output(self, name: str) -> str:
        if not self._is_known(name):
            raise ModelError(f"model: output '{name}' is not defined.", code="onnx-output")
        return self.resolve(name)

    def _is_known(self, name: str) -> bool:
        return name in self.names or (self.outer is not None and self.outer._is_known(name))

    def _is_lost(self, name: str) -> bool:
        if name in self.names or self.outer is None:
            return name in self.lost
        return name in self.lost or self.outer._is_lost(name)

    def resolve(self, name: str) -> str:
        """What a value is called in the builder; one of an outer graph is taken in."""
        if name in self.names:
            return self.names[name]
        assert self.outer is not None, name
        value = self.outer.resolve(name)
        if self.builder is not self.outer.builder:
            value = self._taken_in(value, self.outer.builder)
        self.names[name] = value
        return value

    def _taken_in(self, value: str, outer: GraphBuilder) -> str:
        if value not in self.captured:
            name = self.builder.fresh(value)
            if value in outer.constants:
                return self.builder.constant(name, outer.constants[value])
            if value in outer.sizes:
                self.builder.add_node(GraphNode(outer.sizes[value], (), (name,)))
                return name
            self.captured[value] = self.builder.input(name, outer.types[value])
        return self.captured[value]

    def region(self, proto: GraphProto, given: Sequence[TensorType | Constant]) -> Region:
        """A graph within a node of this one. given: what each of its inputs is.

        Raises: LostRegion where a node of it cannot be imported; ModelError.
        """
        title = str(proto.name)[:_TITLE]  # bytes where it is not UTF-8
        inner = _GraphReader(proto, self.model, GraphBuilder(title), self)
        formals = [item.name for item in proto.input]
        if len(formals) != len(given):
            raise ModelError(
                f"model: the graph '{title}' takes {len(formals)} inputs; its node gives it "
                f"{len(given)}.",
                code="onnx-region-inputs",
            )
        for name, value in zip(formals, given, strict=True):
            inner._define_input(name, value)
        inner.constants()
        outputs = self._all_nodes(inner)
        builder = inner.builder
        builder.drop_unread_sizes(outputs)
        graph = make_graph(builder.name, builder.inputs, outputs, builder.nodes, builder.constants)
        return Region(graph, tuple(inner.captured))

    def inline(self, proto: GraphProto) -> tuple[str, ...]:
        """The nodes of a graph within a node of this one, as nodes of this one; what its outputs
        are called. Raises: as `region`.
        """
        inner = _GraphReader(proto, self.model, self.builder, self)
        inner.constants()
        return self._all_nodes(inner)

    def _all_nodes(self, inner: _GraphReader) -> tuple[str, ...]:
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
            self.builder.constant(name, self.model.tensors.read(tensor, what))
            self.names[tensor.name] = name

    def _own(self, name: str) -> str:
        """What a value that this graph defines is called in the builder."""
        inlined = self.outer is not None and self.outer.builder is self.builder
        return self.builder.fresh(name) if inlined else name

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

    def _node(self, proto: NodeProto, used: set[str]) -> None:
        """Import one node, or note why it cannot be."""
        domain = proto.domain or "ai.onnx"
        opset = self.model.opsets.get(domain, 0)
        try:
            rule, version = _rule(proto, opset, used)
            if not any(map(self._is_lost, reads_of(proto))):
                self._build(proto, rule, version)
                return
        except NotSupported as problem:
            failure = UnsupportedNode(node_name(proto), proto.op_type, domain, opset, str(problem))
            self.model.failures.append(failure)
        except LostRegion:
            pass
        self.lost.update(filter(None, proto.output))

    def _build(self, proto: NodeProto, rule: ImportRule, version: int) -> None:
        proto = self._in_builder(proto)
        tensors = self.model.tensors
        bounds = self.model.bounds if self.outer is None else {}
        reader = NodeReader(proto, version, self.builder, tensors, self, self.walks, bounds)
        if not proto.output or not proto.output[0]:
            raise ModelError(f"model: {reader.title} has no output.", code="onnx-no-output")
        try:
            result = rule.build(reader)
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
        except SizeError as error:
            raise ModelError(
                f"model: {reader.title} needs a number: {error.message}",
                code="onnx-open-size",
                hints=("shapes={...} gives a size that is a number.",),
            ) from error
        except ModelError as error:
            if reader.title not in error.message:
                error.where = error.where or f"in {reader.title}"
            raise
        except (NotSupported, LostRegion, MemoryError):
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
        inputs = [name and self.resolve(name) for name in proto.input]
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


def _rule(proto: NodeProto, opset: int, used: set[str]) -> tuple[ImportRule, int]:
    """The rule for a node and its operator's version. Raises: NotSupported when there is none."""
    if proto.domain not in ("", "ai.onnx") or proto.op_type not in RULES:
        raise NotSupported("there is no such core operator")
    rule = RULES[proto.op_type]
    try:
        version = onnx.defs.get_schema(proto.op_type, opset, "").since_version
    except onnx.defs.SchemaError as error:
        raise NotSupported("the opset has no such operator") from error
    if version not in rule.versions:
        raise NotSupported(
            f"its version {version} is not known; known are {_numbers(rule.versions)}"
        )
    if unknown := sorted(set(attribute_names(proto)) - set(rule.attributes)):
        raise NotSupported(f"attribute '{unknown[0]}' is not known")
    known = len(proto.output) if rule.outputs is None else rule.outputs
    if extra := [name for name in proto.output[known:] if name in used]:
        raise NotSupported(f"its output '{extra[0]}' is used; only the first one is known")
    return rule, version


def _texts(graph: GraphProto) -> Iterator[str]:
    """Every text of a model that is used, but for its own name."""
    for one in all_graphs(graph):
        for node in one.node:
            yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
            yield from (attribute.name for attribute in node.attribute)
        for tensor in (*one.initializer, *(a.t for node in one.node for a in node.attribute)):
            yield tensor.name
            yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
        for item in (*one.input, *one.output):
            yield item.name
            yield from (dim.dim_param for dim in item.type.tensor_type.shape.dim)


def _numbers(versions: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(versions)))


def _declared(item: ValueInfoProto) -> Declared:
    if not item.type.HasField("tensor_type"):
        raise ModelError(f"model: input '{item.name}' is not a tensor.", code="onnx-input-kind")
    tensor = item.type.tensor_type
    if not tensor.HasField("shape"):
        return Declared(item.name, dtype_name(tensor.elem_type), None)
    dims: list[int | SymbolicSize] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        else:
            dims.append(SymbolicSize(dim.dim_param) if dim.dim_param else unnamed(item.name, axis))
    return Declared(item.name, dtype_name(tensor.elem_type), tuple(dims))


__all__ = ["ImportLimits", "import_onnx"]
