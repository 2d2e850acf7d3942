"""What each ONNX operator means in core operators: one rule for each, for all versions since 7.

A rule reads a node and returns the core operator with its inputs, or the constant that the node is.
What depends only on types is decided here: automatic padding, omitted attributes, shapes given as
values. A rule lists the versions whose meaning it knows, so a version that a later ONNX brings is
refused instead of misread. The table holds the rules of every module beside this one; what others
declare (`graph/extensions`) is asked for where it has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from .....tir.errors import known_names
from .....tir.siblings import merged
from ..functions import is_function
from ..node import NoRule, NotSupported, attribute_names, schema_of
from .of_others import check_not_ours, rule_of_others
from .out_of_scope import OUT_OF_SCOPE
from .rule import CONTRIBUTED, ImportRule

RULES: dict[str, ImportRule] = merged(__name__, "RULES")


def rule_name(proto: NodeProto) -> str:
    """What the table calls the operator of a node: of another domain than ONNX's own, with that."""
    own = proto.domain in ("", "ai.onnx")
    return str(proto.op_type) if own else f"{proto.domain}.{proto.op_type}"


def find_rule(proto: NodeProto, opset: int) -> tuple[ImportRule, int]:
    """The rule for a node, of which every output that has a name is read, and its operator's
    version. opset: of the node's domain. Raises: NoRule, NotSupported when it does not know it.
    """
    name = rule_name(proto)
    rule = RULES.get(name)
    if rule is None:
        rule = _others(proto, name, opset)
    else:
        check_not_ours(name)
    version = _version(proto, opset, rule)
    if version not in rule.versions:
        raise NotSupported(
            f"its version {version} is not known; known are {_numbers(rule.versions)}"
        )
    if unknown := sorted(set(attribute_names(proto)) - set(rule.attributes)):
        listed = known_names(unknown[0], rule.attributes)
        raise NotSupported(f"attribute '{unknown[0]}' is not known; known are {listed}")
    known = len(proto.output) if rule.outputs is None else rule.outputs
    if extra := [name for name in proto.output[known:] if name]:
        raise NoRule(f"its output '{extra[0]}' is used; only the first one is known")
    return rule, version


def _others(proto: NodeProto, name: str, opset: int) -> ImportRule:
    """The rule for a node that the table has none for; what ONNX defines as a function is that.

    Raises: NoRule, NotSupported.
    """
    if is_function(proto, opset, {}):
        check_not_ours(name)
        raise NoRule("there is no such core operator")
    try:
        return rule_of_others(proto, name)
    except NoRule:
        if name not in OUT_OF_SCOPE:
            raise
        what, instead = OUT_OF_SCOPE[name]
        raise NoRule(f"it is an operator of ONNX's standard that {what}", instead) from None


def _version(proto: NodeProto, opset: int, rule: ImportRule) -> int:
    """The version of a node's operator: onnxruntime's own ones and those of others have that of
    their domain, and those that onnxruntime adds to ONNX's the first one. Raises: NotSupported when
    there is none.
    """
    schema = schema_of(proto, opset)
    if schema is not None:
        return int(schema.since_version)
    if rule.by_opset and not opset:
        raise NotSupported(f"the model says no opset of '{proto.domain}'")
    if proto.domain == CONTRIBUTED or rule.by_opset:
        return opset
    if rule.foreign:
        return 1
    raise NotSupported("the opset has no such operator")


def _numbers(versions: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(versions)))
