"""Import an ONNX model of any opset that the onnx package knows into a Graph.

Rules know operators from opset 7 on; ONNX's own converter brings an older model there first.
The model is not trusted: sizes are compared with limits before memory is allocated, external data
is read from the model's folder only, and whatever is wrong is a ModelError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import TypeVar

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import GraphProto, ModelProto

from ....runtime.files.regular_file import open_regular
from ....tir.sizes import dims_in
from ...assumed_sizes import telling_assumed
from ...errors import ModelError, ModelFileError, UnsupportedPart, in_numbers, unsupported
from ...ir.build import GraphBuilder
from ...ir.ir import Graph, GraphNode
from ...ops.movement import Identity
from ...types import Array
from ..given import given_constants
from ..limits import ImportLimits, UnsupportedType, checked_type
from ..symbols import Shapes, resolve
from .bounds import data_bounds
from .functions import local_functions
from .graph_reader import TITLE, GraphReader, ModelReading
from .large_tensors import split_model
from .nested import all_graphs
from .old_opsets import OLDEST, CannotConvert, converted
from .structured_inputs import read_inputs
from .structures import Value, tensors_of
from .tensors import TensorReader

Source = str | os.PathLike[str] | bytes | ModelProto
Read = TypeVar("Read")


def import_onnx(
    model: Source,
    *,
    shapes: Shapes | None = None,
    constants: Mapping[str, object] | None = None,
    limits: ImportLimits | None = None,
) -> Graph:
    """The Graph of an ONNX model.

    model: a path, the bytes of a file, or a ModelProto; external data needs a path.
    shapes: sizes that the model leaves open, by input {"x": (1, 3, 224, 224)} or by symbol
    {"batch": 1}; bounds are assumed for the others. Of an input that is a sequence, the shape of
    each tensor: {"x": [(1, 3), (2, 3)]} makes the inputs 'x[0]' and 'x[1]'. constants: the values
    of inputs that are none from then on, by name; None for an optional one without an element.
    An output that is a sequence gives the outputs 'y[0]', 'y[1]', ...
    What a model draws at random is the same in every run, as its seeds say, or the names of its
    values where it has none: noise that is new in each run is an input.
    Raises: ModelFileError when a file cannot be read, UnsupportedOperator with every node that we
    cannot import, ModelError for everything else that is wrong with the model.
    """
    bounds = limits or ImportLimits()
    split = None if isinstance(model, ModelProto) else _split(model, bounds)
    if split is None:
        proto, folder = parsed_model(model, bounds)
        return _import_model(proto, TensorReader(folder, bounds), shapes, constants)
    proto, elements = split
    folder = None if isinstance(model, bytes) else Path(model).parent
    return _import_model(proto, TensorReader(folder, bounds, elements), shapes, constants)


def _split(
    model: str | os.PathLike[str] | bytes, limits: ImportLimits
) -> tuple[ModelProto, Mapping[bytes, Array]] | None:
    """A model with tokens in place of the elements of large tensors, and these; None for one that
    is read as a whole: it is converted first, or is none.
    """
    if isinstance(model, bytes):
        found = split_model(BytesIO(model), len(model))
    else:
        found = _read(Path(model), limits, split_model)
    if found is None or not found.elements:
        return None
    proto = ModelProto()
    try:
        proto.ParseFromString(found.message)
    except DecodeError:
        return None
    opset = _opset(proto)
    return None if opset is None or opset < OLDEST else (proto, found.elements)


def parsed_model(model: Source, limits: ImportLimits) -> tuple[ModelProto, Path | None]:
    """The model and the folder that its external data may lie in.

    Raises: ModelFileError, ModelError.
    """
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
        data = _read(path, limits, lambda file, size: file.read(size))
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


def _read(path: Path, limits: ImportLimits, take: Callable[[BufferedIOBase, int], Read]) -> Read:
    """What is taken from a regular file of at most `limits.file_bytes`, of a size that is known."""
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
            return take(file, size)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelFileError(
            f"model: file '{path}' cannot be read: {reason}.", code="onnx-file"
        ) from error


def _import_model(
    proto: ModelProto,
    tensors: TensorReader,
    shapes: Shapes | None,
    constants: Mapping[str, object] | None,
) -> Graph:
    """The whole model."""
    if not proto.HasField("graph"):
        raise ModelError("model: it has no graph.", code="onnx-graph")
    proto = _converted(proto)
    opsets = {item.domain or "ai.onnx": item.version for item in proto.opset_import}
    bounds, shapes = data_bounds(proto.graph, shapes)
    model = ModelReading(opsets, tensors, bounds, local_functions(proto))
    _check_header(proto.graph, model)
    model.parts.extend(_newer(proto, opsets))
    # nobody calls a model by its name: a long one is cut
    builder = GraphBuilder((proto.graph.name or "model")[:TITLE])
    reader = GraphReader(proto.graph, model, builder)
    reader.constants()
    known = reader.names.keys() | reader.lost  # initialisers
    items = [item for item in proto.graph.input if item.name not in known]
    inputs = read_inputs(items, shapes, constants)
    for name, error, hint in inputs.unknown:
        reader.lose("input", name, error, hint)
    declared = inputs.tensors
    names = [item.name for item in items]
    if len(set(names)) != len(names):
        raise ModelError(f"model: inputs are {names}; expected distinct names.", code="onnx-inputs")
    for name, array in given_constants(declared, inputs.constants).items():
        reader.names[name] = builder.constant(name, array)
    declared = [item for item in declared if item.name not in reader.names]
    resolved = resolve(declared, inputs.tensor_shapes)
    with telling_assumed(dims_in(size for shape in resolved.values() for size in shape)):
        for item in declared:
            shape = resolved[item.name]
            try:
                type_ = checked_type(f"input '{item.name}'", item.dtype, shape, tensors.limits)
            except UnsupportedType as error:
                reader.lose("input", item.name, error)
                continue
            builder.input(item.name, type_)
            reader.names[item.name] = item.name
        reader.structures |= inputs.structures
        outputs = reader.nodes()
    return _finished(reader, outputs)


def _opset(proto: ModelProto) -> int | None:
    """The version of ONNX's own operators; None where a model says none."""
    own = [item.version for item in proto.opset_import if item.domain in ("", "ai.onnx")]
    return own[0] if own else None


def _converted(proto: ModelProto) -> ModelProto:
    """A model of an opset that rules know, or of a newer one. Raises: ModelError."""
    opset, notes = _opset(proto), tuple[str, ...]()
    if opset is not None and opset >= OLDEST:
        return proto
    if opset is None and all(node.domain not in ("", "ai.onnx") for node in proto.graph.node):
        return proto
    if opset is not None:
        try:
            return converted(proto)
        except CannotConvert as problem:
            notes = (f"{problem}.",)
    raise ModelError(
        f"model: opset of ai.onnx is {'none' if opset is None else opset}; expected "
        f"{OLDEST} to {onnx.defs.onnx_opset_version()}.",
        code="onnx-opset",
        notes=notes,
        hints=("export it again: opset 17 is read by most systems.",),
    )


def _newer(proto: ModelProto, opsets: Mapping[str, int]) -> Iterator[UnsupportedPart]:
    """Versions of a model that nobody knew when the onnx package was written."""
    hint = "a newer onnx package knows newer versions, and tilewright what it has rules for."
    newest = onnx.defs.onnx_opset_version()
    if opsets.get("ai.onnx", 0) > newest:
        reason = f"it is {opsets['ai.onnx']}; expected at most {newest}"
        yield UnsupportedPart("opset", "ai.onnx", reason, hint)
    if proto.ir_version > onnx.IR_VERSION:
        reason = f"it is {proto.ir_version}; expected at most {int(onnx.IR_VERSION)}"
        yield UnsupportedPart("IR version", "", reason, hint)


def _finished(reader: GraphReader, values: tuple[Value, ...]) -> Graph:
    """The graph of a model whose nodes were read. Raises: UnsupportedOperator, ModelError."""
    model, builder, proto = reader.model, reader.builder, reader.proto
    if model.failures or model.parts:
        failed = len(model.failures)
        what = in_numbers(model.parts, f"{failed} of {_count(proto)} nodes" if failed else "")
        raise unsupported(what, model.failures, model.parts, code="onnx-unsupported")
    outputs = _flat_outputs(reader, values)
    if not outputs or len(set(outputs)) != len(outputs):
        raise ModelError(
            f"model: outputs are {list(outputs)}; expected distinct names.", code="onnx-outputs"
        )
    builder.drop_unread_sizes(outputs)
    return builder.finish(outputs)


def _flat_outputs(reader: GraphReader, values: tuple[Value, ...]) -> tuple[str, ...]:
    """The tensors of the outputs: those of a sequence 'y' are 'y[0]', 'y[1]', ..."""
    outputs = list[str]()
    for item, value in zip(reader.proto.output, values, strict=True):
        if isinstance(value, str):
            outputs.append(value)
            continue
        for number, tensor in enumerate(tensors_of((value,))):
            own = f"{item.name}[{number}]"
            reader.builder.add_node(GraphNode(Identity(), (tensor,), (own,)))
            outputs.append(own)
    return tuple(outputs)


def _check_header(graph: GraphProto, model: ModelReading) -> None:
    limits = model.tensors.limits
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
    model.count_nodes(graph)
    if any(one.sparse_initializer for one in all_graphs(graph)):
        raise ModelError(
            "model: it has sparse initialisers, which are not supported.", code="onnx-sparse"
        )


def _count(graph: GraphProto) -> int:
    return sum(len(one.node) for one in all_graphs(graph))


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


__all__ = ["ImportLimits", "import_onnx", "parsed_model"]
