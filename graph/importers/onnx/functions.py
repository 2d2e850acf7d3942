"""Functions: what a node without a rule of its own is in other operators, as the model or the
operator's schema says it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, helper
from onnx.shape_inference import InferenceError

from ....tir.sizes import AnySize
from ...types import TensorType, numpy_type
from .nested import graphs_of
from .node import NotSupported, attribute_names, node_name, schema_of

FunctionKey = tuple[str, str, str]  # domain, name, overload


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """The nodes that a node stands for, with its attributes in them. inputs, outputs: what they
    call those of the node; opsets: of the domains, as they count.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[NodeProto, ...]
    opsets: Mapping[str, int]


def local_functions(model: onnx.ModelProto) -> dict[FunctionKey, FunctionProto]:
    """The functions that a model brings."""
    return {(_domain(f.domain), f.name, f.overload): f for f in model.functions}


def local_body(
    proto: NodeProto, functions: Mapping[FunctionKey, FunctionProto]
) -> FunctionBody | None:
    """The body of a function of the model; None where the node calls none."""
    found = functions.get(_key(proto))
    if found is None:
        return None
    return _bound(proto, found, {a.name: a for a in found.attribute_proto})


def is_function(
    proto: NodeProto, opset: int, functions: Mapping[FunctionKey, FunctionProto]
) -> bool:
    """Whether a node calls a function of the model, or one that ONNX defines."""
    return _key(proto) in functions or _has_body(schema_of(proto, opset))


def schema_body(
    proto: NodeProto, opset: int, types: Sequence[TensorType | None]
) -> FunctionBody | None:
    """The body that ONNX gives for an operator of its own; None where it gives none.

    types: of the inputs, None for one that is left out. Raises: NotSupported where the node does
    not fit its operator.
    """
    schema: Any = schema_of(proto, opset)
    if not _has_body(schema):
        return None
    _check_call(schema, proto, types)
    data = _fixed_body(schema, opset) or _typed_body(schema, opset, proto, types)
    if not data:
        return None
    function = FunctionProto()
    function.ParseFromString(data)
    defaults = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != AttributeProto.UNDEFINED
    }
    return _bound(proto, function, defaults)


def _key(proto: NodeProto) -> FunctionKey:
    return _domain(proto.domain), proto.op_type, proto.overload


def _domain(domain: str) -> str:
    return domain or "ai.onnx"


# onnx's own types know nothing of a schema's functions, hence Any
def _has_body(schema: Any) -> bool:
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _check_call(schema: Any, proto: NodeProto, types: Sequence[TensorType | None]) -> None:
    """Refuse a node that lacks what its operator needs: onnx's C++ takes it on trust, and ends the
    process where it is not there.
    """
    given = attribute_names(proto)
    if unknown := sorted(set(given) - set(schema.attributes)):
        raise NotSupported(f"attribute '{unknown[0]}' is not known")
    for name, known in schema.attributes.items():
        if known.required and name not in given:
            raise NotSupported(f"it lacks attribute '{name}'")
        if name in given and given[name].type != known.type.value:
            raise NotSupported(f"attribute '{name}' is not of kind {known.type.name.lower()}")
    if not schema.min_input <= len(types) <= schema.max_input:
        raise NotSupported(
            f"it has {len(types)} inputs; expected {schema.min_input} to {schema.max_input}"
        )
    for formal, type_ in zip(schema.inputs, types, strict=False):
        if type_ is None and formal.option == onnx.defs.OpSchema.FormalParameterOption.Single:
            raise NotSupported(f"it lacks its input {formal.name}")


def _fixed_body(schema: Any, opset: int) -> bytes:
    if not schema.has_function:
        return b""
    version = _nearest(schema.function_opset_versions, opset)
    return bytes(schema.get_function_with_opset_version(version))


def _typed_body(
    schema: Any, opset: int, proto: NodeProto, types: Sequence[TensorType | None]
) -> bytes:
    if not schema.has_context_dependent_function:
        return b""
    version = _nearest(schema.context_dependent_function_opset_versions, opset)
    protos = [_type_proto(type_).SerializeToString() for type_ in types]
    data = proto.SerializeToString()
    build = schema.get_context_dependent_function_with_opset_version
    try:
        return bytes(build(version, data, protos))
    except (InferenceError, RuntimeError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise NotSupported(f"onnx cannot spell it out: {first[:200]}") from error


def _nearest(versions: Sequence[int], opset: int) -> int:
    """The opset of a body: a body means the same in whatever opset it is written."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _type_proto(type_: TensorType | None) -> TypeProto:
    """As ONNX writes a type; sizes that calls decide have no number."""
    if type_ is None:
        return TypeProto()
    kind = helper.np_dtype_to_tensor_dtype(numpy_type(type_.dtype))
    return helper.make_tensor_type_proto(kind, [_size(size) for size in type_.shape])


def _size(size: AnySize) -> int | None:
    return size if isinstance(size, int) else None


def _bound(
    proto: NodeProto, function: FunctionProto, defaults: Mapping[str, AttributeProto]
) -> FunctionBody:
    """A function whose attributes are those of a node."""
    given = {**defaults, **attribute_names(proto)}
    nodes = []
    for node in function.node:
        made = NodeProto()
        made.CopyFrom(node)
        made.name = f"{node_name(proto)}/{node.name}" if node.name else node_name(proto)
        _bind(made, given)
        nodes.append(made)
    opsets = {_domain(item.domain): item.version for item in function.opset_import}
    return FunctionBody(tuple(function.input), tuple(function.output), tuple(nodes), opsets)


def _bind(node: NodeProto, given: Mapping[str, AttributeProto]) -> None:
    """Put values in place of references to attributes, in the graphs within a node too."""
    bound = []
    for attribute in node.attribute:
        made, value = AttributeProto(), attribute
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue  # optional, and the caller leaves it out
            value = given[attribute.ref_attr_name]
        made.CopyFrom(value)
        made.name = attribute.name
        bound.append(made)
    node.ClearField("attribute")
    node.attribute.extend(bound)
    for graph in graphs_of(node):
        for inner in graph.node:
            _bind(inner, given)
