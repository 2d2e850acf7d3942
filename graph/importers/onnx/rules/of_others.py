"""Rules of operators that others declare: a node's attributes are the operator's fields, or a
function of theirs says what the node is.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import numpy as np
from onnx import AttributeProto, NodeProto

from .....tir.errors import TilewrightError
from ....errors import ExtensionError, OperatorError
from ....extensions.fields import Plain, WrongField, field_types, operator_from
from ....extensions.lookup import Request, declared_for, why_not_declared
from ....extensions.operators import DECLARED, Declaration
from ....ops.base import Operator
from ....types import Splat
from ..node import NodeReader, NoRule, NotSupported
from .rule import ImportRule, Result, Several, Values

_DECLARE = (
    "@tw.operator(name, onnx=(domain, type, (opset,))) declares an operator of your own; a "
    "function of the model may spell it in operators of ONNX, too."
)
_MISSING = (
    "export the model in the operators of ONNX itself; CONTRIBUTING.md says how tilewright gets "
    "another operator."
)


def rule_of_others(proto: NodeProto, key: str) -> ImportRule:
    """The rule for a node that tilewright has none for. key: what the table of rules calls its
    operator. Raises: NoRule; NotSupported where the package that brings it does not load.
    """
    try:
        found = declared_for(Request("onnx", key, proto.domain or "ai.onnx"))
    except ExtensionError as error:
        reason = error.message.removeprefix("extensions: ").rstrip(".")
        raise NotSupported(reason, *error.hints) from error
    if found is None:
        reason, hint = why_not_declared(proto.domain or "ai.onnx", DECLARED.onnx)
        missing = _MISSING if proto.domain in ("", "ai.onnx") else _DECLARE
        raise NoRule(reason or "there is no such core operator", hint or missing)
    return import_rule(found)


def check_not_ours(key: str) -> None:
    """Refuse a node that tilewright has a rule for and somebody else, too. Raises: NotSupported."""
    other = DECLARED.onnx.get(key)
    if other is not None:
        raise NotSupported(f"tilewright has a rule for it, and {other} declares one, too")


@cache
def import_rule(declared: Declaration) -> ImportRule:
    """The rule that a declaration is."""
    rule, kind = declared.onnx, declared.kind
    assert rule is not None
    names = tuple(field_types(kind)) if rule.build is None else rule.attributes

    def by_fields(node: NodeReader) -> Result:
        values = {one.name: _plain(one) for one in node.proto.attribute}
        try:
            return operator_from(kind, values), node.inputs
        except WrongField as problem:
            raise NotSupported(str(problem)) from problem

    def by_function(node: NodeReader) -> Result:
        assert rule is not None
        assert rule.build is not None
        try:
            result = rule.build(node)
        except (TilewrightError, NotSupported):
            raise
        except Exception as error:
            raise OperatorError(
                f"operators: the ONNX rule of {declared} raised {type(error).__name__}: {error}.",
                code="operator-onnx-raised",
            ) from error
        if not _is_result(result):
            raise OperatorError(
                f"operators: the ONNX rule of {declared} gives {result!r}; expected an operator "
                "with the names of its inputs.",
                code="operator-onnx-result",
                hints=("return Mish(), node.inputs",),
            )
        return cast(Result, result)

    outputs = kind.output_count if rule.outputs is None else rule.outputs
    build = by_fields if rule.build is None else by_function
    return ImportRule(rule.versions, names, build, outputs, by_opset=True)


def _is_result(result: object) -> bool:
    if isinstance(result, Several | Values | Splat | np.ndarray):
        return True
    match result:
        case (Operator(), tuple(inputs)):
            return all(isinstance(name, str) for name in inputs)
    return False


def _plain(attribute: AttributeProto) -> Plain:
    """The value of an attribute: a number, a text, or several. Raises: NotSupported."""
    match attribute.type:
        case AttributeProto.INT:
            return int(attribute.i)
        case AttributeProto.FLOAT:
            return float(attribute.f)
        case AttributeProto.STRING:
            return attribute.s.decode("utf-8", "replace")
        case AttributeProto.INTS:
            return tuple(map(int, attribute.ints))
        case AttributeProto.FLOATS:
            return tuple(map(float, attribute.floats))
        case AttributeProto.STRINGS:
            return tuple(one.decode("utf-8", "replace") for one in attribute.strings)
    kind = AttributeProto.AttributeType.Name(attribute.type).lower()
    raise NotSupported(
        f"attribute '{attribute.name}' is of kind {kind}; expected a number, a text or a list",
        "an OnnxRule with build=... reads others.",
    )
