"""Import an ONNX model, opset 7 to the newest that the onnx package knows, into a Graph.

The model is not trusted: sizes are compared with limits before memory is allocated, external data
is read from the model's folder only, and whatever is wrong is a ModelError. Nodes that we have no
operator for are refused together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from ....graph.importers.onnx.index_walks import IndexWalk
from ....runtime.files.regular_file import open_regular
from ....tir.errors import InternalError
from ....tir.sizes import SizeError
from ...errors import ModelError, ModelFileError, UnsupportedNode, UnsupportedOperator
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode
from ...types import SymbolicSize
from .limits import ImportLimits, checked_type
from .node import NodeReader, NotSupported, attribute_names, node_name
from .rules.rule import ImportRule, Several
from .rules.table import RULES
from .symbols import Declared, Shapes, resolve, unnamed
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
    {"batch": 1}.
    Raises: ModelFileError when a file cannot be read, UnsupportedOperator with every node that we
    cannot import, ModelError for everything else that is wrong with the model.
    """
    bounds = limits or ImportLimits()
    proto, folder = _parsed(model, bounds)
    return _Importer(proto, TensorReader(folder, bounds)).graph(shapes)


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


class _Importer:
    """One model on its way into a Graph."""

    def __init__(self, proto: ModelProto, tensors: TensorReader) -> None:
        if not proto.HasField("graph"):
            raise ModelError("model: it has no graph.", code="onnx-graph")
        self.proto: GraphProto = proto.graph
        self.opsets = {item.domain or "ai.onnx": item.version for item in proto.opset_import}
        self.tensors = tensors
        self.limits = tensors.limits
        # nobody calls a model by its name: a long one is cut
        self.builder = GraphBuilder((proto.graph.name or "model")[:_TITLE])
        self.builder.reserved = frozenset(
            name for node in self.proto.node for name in (*node.input, *node.output)
        )
        self.walks: dict[str, IndexWalk] = {}
        self.failures: list[UnsupportedNode] = []
        self.lost: set[str] = set()  # values of nodes that could not be imported

    def graph(self, shapes: Shapes | None) -> Graph:
        """The whole model."""
        self._check_header()
        self._constants()
        declared = [
            _declared(item) for item in self.proto.input if item.name not in self.builder.constants
        ]
        names = [item.name for item in declared]
        if len(set(names)) != len(names):
            raise ModelError(
                f"model: inputs are {names}; expected distinct names.", code="onnx-inputs"
            )
        for name, shape in resolve(declared, shapes).items():
            dtype = next(item.dtype for item in declared if item.name == name)
            self.builder.input(name, checked_type(f"input '{name}'", dtype, shape, self.limits))
        used = {name for node in self.proto.node for name in node.input}
        outputs = tuple(item.name for item in self.proto.output)
        for node in self._sorted():
            self._node(node, used | set(outputs))
        if self.failures:
            raise UnsupportedOperator(
                f"model: {len(self.failures)} of {len(self.proto.node)} nodes cannot be imported.",
                tuple(self.failures),
                code="onnx-unsupported",
            )
        for name in outputs:
            if name not in self.builder.types:
                raise ModelError(f"model: output '{name}' is not defined.", code="onnx-output")
        if not outputs or len(set(outputs)) != len(outputs):
            raise ModelError(
                f"model: outputs are {list(outputs)}; expected distinct names.", code="onnx-outputs"
            )
        self.builder.drop_unread_sizes(outputs)
        return self.builder.finish(outputs)

    def _check_header(self) -> None:
        newest = onnx.defs.onnx_opset_version()
        opset = self.opsets.get("ai.onnx")
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
        for text in (self.proto.name, *_texts(self.proto)):
            if type(text) is not str:  # protobuf gives bytes for what is not UTF-8
                raise ModelError(f"model: the name {text!r} is not UTF-8 text.", code="onnx-text")
        most = self.limits.name_characters
        for text in _texts(self.proto):
            if len(text) > most:
                raise ModelError(
                    f"model: the name '{text[:40]}...' has {len(text)} characters; expected at "
                    f"most {most}.",
                    code="onnx-name",
                )
        count = len(self.proto.node)
        if count > self.limits.nodes:
            raise ModelError(
                f"model: {count} nodes; expected at most {self.limits.nodes}.", code="onnx-nodes"
            )
        if self.proto.sparse_initializer:
            raise ModelError(
                "model: it has sparse initialisers, which are not supported.", code="onnx-sparse"
            )

    def _constants(self) -> None:
        for tensor in self.proto.initializer:
            self.builder.constant(
                tensor.name, self.tensors.read(tensor, f"initialiser '{tensor.name}'")
            )

    def _sorted(self) -> Sequence[NodeProto]:
        """The nodes so that values are defined before use: the model's own order if it is one."""
        makers = {name: i for i, node in enumerate(self.proto.node) for name in node.output if name}
        flow: nx.DiGraph[int] = nx.DiGraph()
        flow.add_nodes_from(range(len(self.proto.node)))
        for i, node in enumerate(self.proto.node):
            for name in node.input:
                if name in makers:
                    flow.add_edge(makers[name], i)
                elif name and name not in self.builder.types:
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
        opset = self.opsets.get(domain, 0)
        try:
            rule, version = _rule(proto, opset, used)
            if not self.lost.intersection(proto.input):
                self._build(proto, rule, version)
                return
        except NotSupported as problem:
            failure = UnsupportedNode(node_name(proto), proto.op_type, domain, opset, str(problem))
            self.failures.append(failure)
        self.lost.update(proto.output)

    def _build(self, proto: NodeProto, rule: ImportRule, version: int) -> None:
        reader = NodeReader(proto, version, self.builder, self.tensors, self.walks)
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
        except (NotSupported, MemoryError):
            raise
        except Exception as error:
            raise InternalError(
                f"import: the rule of {reader.title} failed: {type(error).__name__}: {error}.",
                code="onnx-rule",
            ) from error


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
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
    for tensor in (*graph.initializer, *(a.t for node in graph.node for a in node.attribute)):
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    for item in (*graph.input, *graph.output):
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
