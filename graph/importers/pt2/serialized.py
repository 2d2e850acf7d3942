"""What torch.export's JSON says, as a program of aten operators.

Read is a schema of major version 8, see torch/_export/serde/schema.py; what was tried are archives
of torch 2.13, schema 8.20.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import ModelError
from ..aten.places import line_of
from ..aten.program import (
    Argument,
    ExportedGraph,
    ExportedNode,
    Extent,
    Known,
    Named,
    Output,
    RecordedType,
    Subgraph,
)
from .fields import checked, field, union

DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8e8m0",
    34: "uint32",
    35: "uint64",
}
_DEEPEST = 16  # graphs within graphs


def dtype_of(number: object) -> str:
    """Our name of an element type of torch."""
    return DTYPES.get(checked(number, int, "an element type"), f"number {number}")


def extent_of(item: object) -> Extent:
    """A size: a number, or the text of an expression."""
    kind, value = union(item, "a size")
    if kind == "as_int":
        return checked(value, int, "a size")
    if kind == "as_expr":
        return field(value, "expr_str", str)
    raise _unknown(kind, "a size")


def type_from(meta: object) -> RecordedType:
    """The type that is recorded of a tensor."""
    sizes = field(meta, "sizes", list)
    return RecordedType(
        dtype_of(field(meta, "dtype", int)), tuple(extent_of(size) for size in sizes)
    )


def constant_of(item: object) -> Known:
    """The number or the text that an input is in every call."""
    kind, value = union(item, "a constant")
    if value is None or isinstance(value, bool | int | float | str):
        return None if kind == "as_none" else value
    raise _unknown(kind, "a constant")


def graph_from(item: object, depth: int = 0) -> ExportedGraph:
    """A graph. Raises: ModelError."""
    if depth > _DEEPEST:
        raise ModelError(
            f"model: graphs lie more than {_DEEPEST} deep in each other.", code="pt2-depth"
        )
    types = field(item, "tensor_values", dict)
    inputs = [_argument(one, depth) for one in field(item, "inputs", list)]
    return ExportedGraph(
        tuple(one.name if isinstance(one, Named) else "" for one in inputs),
        tuple(_argument(one, depth) for one in field(item, "outputs", list)),
        tuple(_node(one, depth) for one in field(item, "nodes", list)),
        {name: type_from(meta) for name, meta in types.items()},
    )


def _node(item: object, depth: int) -> ExportedNode:
    target = field(item, "target", str).removeprefix("torch.ops.")
    outputs = tuple(_output(one) for one in field(item, "outputs", list))
    given = field(item, "inputs", list)
    arguments = dict[str, Argument]()
    for number, one in enumerate(given):
        name = field(one, "name", str) or f"argument_{number}"
        arguments[name] = _argument(one.get("arg", None), depth)
    metadata = checked(checked(item, dict, "a node").get("metadata", {}), dict, "'metadata'")
    named = checked(item, dict, "a node").get("name")
    first = next((one if isinstance(one, str) else one[0] for one in outputs if one), target)
    return ExportedNode(
        str(named or first),
        target,
        arguments,
        outputs,
        _module(metadata),
        line_of(str(metadata.get("stack_trace", ""))),
    )


def _module(metadata: Mapping[str, object]) -> str:
    """The path of the innermost module: "L__self__,,M;L__self__e,e,Embedding" is "e"."""
    innermost = str(metadata.get("nn_module_stack", "")).rpartition(";")[2].split(",")
    return innermost[1] if len(innermost) == 3 and innermost[0].startswith("L_") else ""


def _output(item: object) -> Output:
    kind, value = union(item, "an output")
    match kind:
        case "as_tensor":
            return field(value, "name", str)
        case "as_tensors":
            return tuple(field(one, "name", str) for one in checked(value, list, kind))
        case "as_sym_int" | "as_sym_float" | "as_sym_bool":
            return str(checked(value, dict, kind).get("as_name") or "") or None
        case "as_optional_tensor":
            return _output(value)
        case "as_optional_tensors":
            return tuple(str(_output(one) or "") for one in checked(value, list, kind))
        case "as_none" | "as_token":
            return None
    raise _unknown(kind, "an output")


def _argument(item: object, depth: int) -> Argument:
    kind, value = union(item, "an argument")
    match kind:
        case "as_none":
            return None
        case "as_tensor":
            return Named(field(value, "name", str))
        case "as_tensors":
            return tuple(Named(field(one, "name", str)) for one in checked(value, list, kind))
        case "as_int" | "as_memory_format" | "as_layout":
            return checked(value, int, kind)
        case "as_bool":
            return checked(value, bool, kind)
        case "as_float":
            return _real(value)
        case "as_string" | "as_operator":
            return checked(value, str, kind)
        case "as_ints" | "as_bools" | "as_strings":
            each = {"as_ints": int, "as_bools": bool, "as_strings": str}[kind]
            return tuple(checked(one, each, kind) for one in checked(value, list, kind))
        case "as_floats":
            return tuple(_real(one) for one in checked(value, list, kind))
        case "as_scalar_type":
            return dtype_of(value)
        case "as_device":
            return field(value, "type", str)
        case "as_sym_int" | "as_sym_bool" | "as_sym_float":
            return _symbolic(value)
        case "as_sym_ints" | "as_sym_bools" | "as_sym_floats":
            return tuple(_symbolic(one) for one in checked(value, list, kind))
        case "as_optional_tensor":
            return _argument(value, depth)
        case "as_optional_tensors":
            return tuple(_argument(one, depth) for one in checked(value, list, kind))
        case "as_graph":
            return Subgraph(graph_from(field(value, "graph", dict), depth + 1))
    raise _unknown(kind, "an argument")


def _symbolic(item: object) -> Argument:
    kind, value = union(item, "a number")
    if kind == "as_name":
        return Named(checked(value, str, kind))
    return _argument({kind: value}, 0)


def _real(value: object) -> float:
    """JSON's own numbers, and the texts of what it has none for."""
    if isinstance(value, str) and value in ("Infinity", "-Infinity", "NaN"):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return checked(value, float, "a number")


def _unknown(kind: str, what: str) -> ModelError:
    return ModelError(
        f"model: {what} of the archive is '{kind[:40]}', which is not known.",
        code="pt2-kind",
        hints=("a newer tilewright may know it; ONNX is another way in.",),
    )
