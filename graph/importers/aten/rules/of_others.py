"""Rules of operators that others declare: a call's tensors are the operator's inputs and its other
arguments the operator's fields, or a function of theirs says what the call is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from .....tir.errors import TilewrightError
from ....errors import ExtensionError, OperatorError
from ....extensions.fields import WrongField, operator_from
from ....extensions.lookup import Request, declared_for, why_not_declared
from ....extensions.operators import DECLARED, Declaration
from ...onnx.node import LostRegion, NotSupported
from ..rule import Rule
from ..writer import AtenValue, AtenWriter

_MISSING = "CONTRIBUTING.md says how tilewright gets another operator."
_DECLARE = "@tw.operator(name, aten='library::operator') declares an operator of your own."


def rule_of_others(target: str) -> tuple[Rule, Declaration]:
    """The rule of an operator that tilewright has none for, and who declares it. target:
    "my.mish.default". Raises: NotSupported.
    """
    key, namespace = target.removesuffix(".default"), target.partition(".")[0]
    try:
        found = declared_for(Request("aten", key, namespace))
    except ExtensionError as error:
        reason = error.message.removeprefix("extensions: ").rstrip(".")
        raise NotSupported(reason, *error.hints) from error
    if found is None:
        reason, hint = why_not_declared(namespace, DECLARED.aten)
        missing = _MISSING if namespace == "aten" else _DECLARE
        raise NotSupported(reason or "there is no rule for it", hint or missing)
    return _rule(found), found


def check_not_ours(target: str) -> None:
    """Refuse a call that tilewright has a rule for and somebody else, too. Raises: NotSupported."""
    other = DECLARED.aten.get(target.removesuffix(".default"))
    if other is not None:
        raise NotSupported(f"tilewright has a rule for it, and {other} declares one, too")


@cache
def _rule(found: Declaration) -> Rule:
    """The rule that a declaration is."""
    rule, kind = found.aten, found.kind
    assert rule is not None
    if rule.build is not None:
        return _guarded(found, rule.build)

    def by_fields(writer: AtenWriter, **arguments: object) -> AtenValue | list[AtenValue]:
        inputs, values = _split(arguments)
        try:
            made = writer.emit_all(operator_from(kind, values), *inputs)
        except WrongField as problem:
            raise NotSupported(str(problem)) from problem
        return made[0] if len(made) == 1 else list(made)

    return by_fields


def _guarded(found: Declaration, build: Rule) -> Rule:
    """A function of others, which may raise anything."""

    def by_function(writer: AtenWriter, **arguments: object) -> object:
        try:
            return build(writer, **arguments)
        except (TilewrightError, NotSupported, LostRegion):
            raise
        except Exception as error:
            raise OperatorError(
                f"operators: the aten rule of {found} raised {type(error).__name__}: {error}.",
                code="operator-aten-raised",
                hints=("its parameters, behind the writer, are those of the operator's schema.",),
            ) from error

    return by_function


def _split(arguments: Mapping[str, object]) -> tuple[list[AtenValue], dict[str, object]]:
    """The tensors, in order, and the other arguments."""
    inputs, values = list[AtenValue](), dict[str, object]()
    for name, value in arguments.items():
        if isinstance(value, AtenValue):
            inputs.append(value)
        elif isinstance(value, list) and value and all(isinstance(v, AtenValue) for v in value):
            inputs += value
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return inputs, values
