"""Which ONNX operators are read, in which versions and element types: found by reading nodes.

A probe is a node test of ONNX's own that has one node. It is read in each version of its operator
since opset 7, and there with each element type that ONNX allows for a type variable: the others as
the test has them or, where ONNX wants it or the node is refused so, of that type, too. Where no
test fits, the rules are asked which versions they know.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from onnx.defs import OpSchema

from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.node import NotSupported
from tilewright.graph.importers.onnx.rules.table import RULES, find_rule, rule_name
from tilewright.graph.ir.ir import Graph
from tilewright.graph.types import Array

from .onnx_cases import array, load_cases, read_saying, reason

FIRST = 7  # the oldest opset whose operators are read as they are
# the element types that are numbers, of which two have another name in ONNX's schemas
ELEMENTS = {
    {"float": "float32", "double": "float64"}.get(name, name): getattr(TensorProto, name.upper())
    for name in (
        *("bool", "int2", "int4", "int8", "int16", "int32", "int64"),
        *("uint2", "uint4", "uint8", "uint16", "uint32", "uint64"),
        *("float4e2m1", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"),
        *("float8e8m0", "float16", "bfloat16", "float", "double"),
    )
}
WRITTEN = {name: {"float32": "float", "float64": "double"}.get(name, name) for name in ELEMENTS}
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")  # they say the type of a result
TRIED = 8  # probes of an operator
OF_THE_CASE = re.compile("is not a constant|data decide")  # what refuses a test, not its operator


@dataclass(frozen=True, slots=True)
class Probe:
    """A model of one node, and the values of its inputs."""

    model: ModelProto
    values: Mapping[str, Array]

    @property
    def node(self) -> NodeProto:
        node: NodeProto = self.model.graph.node[0]
        return node


@dataclass(frozen=True, slots=True)
class Version:
    """A version of an operator. last: the newest opset that has it."""

    schema: OpSchema
    last: int


@dataclass(frozen=True, slots=True)
class Support:
    """What is read of a version. read: the element types, by type variable; refused: the reason for
    each of the others. why: the reason for which the operator is not read at all.
    """

    read: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, Mapping[str, str]]
    why: str = ""


def versions(domain: str) -> dict[str, list[Version]]:
    """The operators of a domain: of each the versions that opsets since 7 have, in order."""
    history: dict[str, list[OpSchema]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            history[schema.name].append(schema)
    newest = max(schema.since_version for of_one in history.values() for schema in of_one)
    found = {}
    for name, schemas in sorted(history.items()):
        ordered = sorted(schemas, key=lambda schema: schema.since_version)
        ends = [*(schema.since_version - 1 for schema in ordered[1:]), newest]
        found[name] = [
            Version(schema, last)
            for schema, last in zip(ordered, ends, strict=True)
            if (domain or last >= FIRST) and not schema.deprecated
        ]
    return {name: of_one for name, of_one in found.items() if of_one}


@cache
def probes() -> dict[tuple[str, str], list[Probe]]:
    """By domain and name of the operator."""
    found: dict[tuple[str, str], list[Probe]] = defaultdict(list)
    for case in load_cases():
        if len(case.model.graph.node) != 1:
            continue
        node = case.model.graph.node[0]
        names = [item.name for item in case.model.graph.input]
        inputs, _ = case.data_sets[0]
        values = dict(zip(names, map(array, inputs), strict=False))
        kinds = {getattr(value, "dtype", np.dtype(object)).kind for value in values.values()}
        if not kinds & set("OUS"):  # no sequence, and no text
            found[node.domain, node.op_type].append(Probe(case.model, values))
    return found


def allowed(schema: OpSchema) -> dict[str, list[str]]:
    """The element types of numbers that each type variable may be."""
    found = {}
    for constraint in schema.type_constraints:
        texts = set(constraint.allowed_type_strs)
        known = [name for name in ELEMENTS if f"tensor({WRITTEN[name]})" in texts]
        if known:
            found[constraint.type_param_str] = known
    return found


def fitting(version: Version) -> list[Probe]:
    """The probes that may be of a version."""
    schema = version.schema
    return [probe for probe in probes()[schema.domain, schema.name] if _fits(probe.node, schema)]


def find_support(version: Version) -> Support:
    """What is read of a version."""
    found = fitting(version)
    if not found:
        return _unprobed(version)
    read: dict[str, tuple[str, ...]] = {}
    refused: dict[str, dict[str, str]] = {}
    for variable, types in allowed(version.schema).items():
        reasons = {type_: find_reason(found, version, variable, type_) for type_ in types}
        tried = {type_: why for type_, why in reasons.items() if why is not None}
        if tried:
            read[variable] = tuple(type_ for type_, why in tried.items() if not why)
            refused[variable] = {type_: why for type_, why in tried.items() if why}
    if any(read.values()):
        return Support(read, refused)
    why = min((read_probe(probe, version)[1] for probe in found), key=len)
    own = why.startswith((f"{version.schema.name}:", "input:")) and not OF_THE_CASE.search(why)
    return Support({}, {}, why) if own else _unprobed(version)


def find_reason(found: Sequence[Probe], version: Version, variable: str, type_: str) -> str | None:
    """Why no probe is read with a type, empty where one is; None where none can have it."""
    reasons = [why for _, why in typed(found, version, variable, type_)]
    return ("" if "" in reasons else reasons[0]) if reasons else None


def typed(
    found: Sequence[Probe], version: Version, variable: str, type_: str
) -> list[tuple[Graph | None, str]]:
    """Graphs of probes with a type, up to the first that is read; why the others have none."""
    results = []
    others = {name for name, types in allowed(version.schema).items() if type_ in types}
    for variables in ({variable}, others):
        for probe in found[:TRIED]:
            made = _retyped(probe, version.schema, variable, variables, type_)
            if made is not None:
                results.append(read_probe(made, version))
                if results[-1][0] is not None:
                    return results
    return results


def read_probe(probe: Probe, version: Version) -> tuple[Graph | None, str]:
    """The graph of a probe in the last opset that has a version, or why it has none."""
    model = ModelProto()
    model.CopyFrom(probe.model)
    for item in model.opset_import:
        if (item.domain or "ai.onnx") == (version.schema.domain or "ai.onnx"):
            item.version = version.last
    try:
        return read_saying(model, probe.values)[0], ""
    except UnsupportedOperator as error:
        return None, reason(error)
    except ModelError as error:
        return None, re.sub(r"'[^']*'", "'...'", str(error).partition("\n")[0])


def _unprobed(version: Version) -> Support:
    """Of a version that no probe fits: what the rules say, and for what those of ai.onnx.ml refuse
    a node without attributes.
    """
    schema = version.schema
    rule = RULES.get(rule_name(NodeProto(op_type=schema.name, domain=schema.domain)))
    if rule is None:
        has_body = schema.has_function or schema.has_context_dependent_function
        return Support({}, {}, "" if has_body else _why_none(schema, version))
    if schema.since_version not in rule.versions:
        return Support({}, {}, "this version is not known")
    if not schema.domain:
        return Support({}, {})
    names = [f"x{n}" for n in range(schema.min_input)]
    node = helper.make_node(schema.name, names, ["y"], domain=schema.domain)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in names]
    graph = helper.make_graph([node], "bare", inputs, [ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid(schema.domain, version.last)]
    try:
        import_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    except UnsupportedOperator as error:
        return Support({}, {}, reason(error))
    except ModelError:
        pass  # it lacks what the rule asks for
    return Support({}, {})


def _why_none(schema: OpSchema, version: Version) -> str:
    """Why an operator that is no function has no rule."""
    try:
        find_rule(NodeProto(op_type=schema.name, domain=schema.domain), version.last)
    except NotSupported as error:
        return str(error)
    raise AssertionError(schema.name)


def _fits(node: NodeProto, schema: OpSchema) -> bool:
    """Whether a node may be of a version: as far as its inputs, outputs and attributes go."""
    given = {attribute.name: attribute for attribute in node.attribute}
    required = {name for name, known in schema.attributes.items() if known.required}
    return (
        required <= given.keys() <= schema.attributes.keys()
        and all(a.type == schema.attributes[name].type.value for name, a in given.items())
        and schema.min_input <= len(node.input) <= schema.max_input
        and schema.min_output <= len(node.output) <= schema.max_output
    )


def _retyped(
    probe: Probe, schema: OpSchema, variable: str, variables: Collection[str], type_: str
) -> Probe | None:
    """The probe with another element type for some type variables; None where it has none for
    `variable`.
    """
    model = ModelProto()
    model.CopyFrom(probe.model)
    node, element = model.graph.node[0], ELEMENTS[type_]
    of_inputs = {
        name: schema.inputs[min(position, len(schema.inputs) - 1)].type_str
        for position, name in enumerate(node.input)
        if name
    }
    names = {name for name, text in of_inputs.items() if text in variables}
    if variable not in of_inputs.values() and not _set_type(node, schema, variable, element):
        return None
    for item in model.graph.input:
        if item.name in names:
            item.type.tensor_type.elem_type = element
    for item in model.graph.output:
        item.ClearField("type")
    dtype = helper.tensor_dtype_to_np_dtype(element)
    with np.errstate(all="ignore"):
        values = {
            name: np.asarray(value).astype(np.float32).astype(dtype) if name in names else value
            for name, value in probe.values.items()
        }
    return Probe(model, values)


def _set_type(node: NodeProto, schema: OpSchema, variable: str, element: int) -> bool:
    """Ask for results of a type, by the attribute that says it; whether there is one."""
    made = {name for name in TYPE_ATTRIBUTES if name in schema.attributes}
    if not made or schema.outputs[0].type_str != variable:
        return False
    kept = [attribute for attribute in node.attribute if attribute.name not in made]
    node.ClearField("attribute")
    node.attribute.extend([*kept, helper.make_attribute(min(made), element)])
    return True
