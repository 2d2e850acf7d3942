"""The open set of operators: those that others declare, by name.

A declaration says which class it is and which nodes of models it stands for. What the operator
does is the class's own affair, as with the operators of `graph/ops`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from inspect import isabstract
from typing import NoReturn, TypeVar, dataclass_transform

from ...tir.errors import TilewrightError
from ..errors import ModelError, OperatorError
from ..ops.base import Operator
from .fields import field_types, is_plain
from .origin import Origin, origin_of
from .rules import AtenRule, OnnxRule

_NAME = re.compile(r"[A-Za-z_][\w.-]*::[A-Za-z_]\w*", re.ASCII)
_TARGET = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.\w+)?", re.ASCII)
Kind = TypeVar("Kind", bound=Operator)


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """An operator of others. name: "my.ops::Mish"; version: of its meaning; kind: its class."""

    name: str
    version: int
    kind: type[Operator]
    onnx: OnnxRule | None
    aten: AtenRule | None

    def __str__(self) -> str:
        return f"operator '{self.name}', version {self.version}, of {self.origin}"

    @property
    def origin(self) -> Origin:
        """Where its class comes from."""
        return origin_of(self.kind)


class _Declared:
    """All declarations: by name, by class, and by the nodes that they stand for."""

    def __init__(self) -> None:
        self.names: dict[str, Declaration] = {}
        self.kinds: dict[type[Operator], Declaration] = {}
        self.onnx: dict[str, Declaration] = {}
        self.aten: dict[str, Declaration] = {}

    def add(self, made: Declaration) -> None:
        """Add one. A class that is defined again where it stands takes the place of its former
        self. Raises: OperatorError where another one has the name, or stands for the same nodes.
        """
        own = self.names.get(made.name), f"operator '{made.name}'"
        for taken, what in (own, *self._of(made)):
            if taken is not None and _place(taken.kind) != _place(made.kind):
                places = " and in ".join(map(_described, (taken.kind, made.kind)))
                raise OperatorError(
                    f"operators: {what} is declared twice, in {places}; expected one of them.",
                    code="operator-twice",
                    hints=("a name, and a node of models, belongs to one package: rename one.",),
                )
        self._remove(self.names.get(made.name))
        self.names[made.name] = self.kinds[made.kind] = made
        if made.onnx is not None:
            self.onnx[made.onnx.key] = made
        if made.aten is not None:
            self.aten[made.aten.key] = made

    def _of(self, made: Declaration) -> list[tuple[Declaration | None, str]]:
        found: list[tuple[Declaration | None, str]] = []
        if made.onnx is not None:
            found.append((self.onnx.get(made.onnx.key), str(made.onnx)))
        if made.aten is not None:
            found.append((self.aten.get(made.aten.key), str(made.aten)))
        return found

    def _remove(self, old: Declaration | None) -> None:
        if old is None:
            return
        del self.names[old.name], self.kinds[old.kind]
        if old.onnx is not None:
            del self.onnx[old.onnx.key]
        if old.aten is not None:
            del self.aten[old.aten.key]


DECLARED = _Declared()


@dataclass_transform(frozen_default=True)
def operator(
    name: str,
    *,
    version: int = 1,
    onnx: OnnxRule | tuple[str, str, tuple[int, ...]] | None = None,
    aten: AtenRule | str | None = None,
) -> Callable[[type[Kind]], type[Kind]]:
    """Declare an operator of your own: a decorator of a subclass of `Operator` or `Elementwise`.

        @tw.operator("my.ops::Mish", onnx=("my.ops", "Mish", (1,)), aten="my::mish")
        class Mish(tw.Elementwise):
            beta: float = 1.0

    The class becomes a frozen dataclass, whose annotated fields are the operator's attributes. From
    then on graphs may hold it; it is fused, planned, proved and checked like one of tilewright's.
    name: a namespace of your own and a name. version: of its meaning, which reports show. onnx: the
    domain, the name and the opsets of the domain of the nodes that it stands for; aten: the
    operator of torch.library. Attributes and arguments are fields by name; an `OnnxRule` or an
    `AtenRule` has a function instead. `check_operator` tries what the class says.

    A package that has an entry point of the group `tilewright.operators`, named as the domain or
    the library, is imported when a model has a node of it.
    Raises: OperatorError.
    """

    _check_name(name, version)
    rules = _onnx_rule(name, onnx), _aten_rule(name, aten)

    def declare(kind: type[Kind]) -> type[Kind]:
        _check_class(name, kind)
        made = _frozen(name, kind)
        if any(rule is not None and rule.build is None for rule in rules):
            _check_fields(name, made)
        DECLARED.add(Declaration(name, version, made, *rules))
        return made

    return declare


def declaration_of(kind: type[Operator]) -> Declaration | None:
    """The declaration of an operator's class; None of ours and of one that nobody declared."""
    return DECLARED.kinds.get(kind)


def blame(op: Operator, method: str, error: Exception) -> None:
    """Say of whom an operator is whose method raised what it must not: anything but a ModelError.

    Raises: OperatorError where it is of others.
    """
    declared = declaration_of(type(op))
    if declared is not None and not isinstance(error, ModelError):
        text = error.message if isinstance(error, TilewrightError) else str(error)
        problem = f"{type(error).__name__}: {text.rstrip('.')}"
        raise OperatorError(
            f"operators: '{method}' of {declared} raised {problem}.",
            code="operator-raised",
            hints=("tw.check_operator(operator, cases) tries what an operator says of itself.",),
        ) from error


def _check_name(name: object, version: object) -> None:
    """Raises: OperatorError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OperatorError(
            f"operators: the name {name!r} has no namespace; expected one like 'my.ops::Mish'.",
            code="operator-name",
        )
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise OperatorError(
            f"operators: the version of '{name}' is {version!r}; expected 1, 2, ...",
            code="operator-version",
        )


def _check_class(name: str, kind: object) -> None:
    """Raises: OperatorError."""
    if not (isinstance(kind, type) and issubclass(kind, Operator)):
        _refuse_class(name, kind, "is no operator; expected a subclass of tw.Operator")
    if not kind.__name__.isascii():
        _refuse_class(name, kind, "has a name that is no ASCII; kernels are called by it")
    if isabstract(kind):
        lacking = ", ".join(sorted(kind.__abstractmethods__))
        _refuse_class(name, kind, f"lacks {lacking}; expected a class that has all of them")


def _frozen(name: str, kind: type[Kind]) -> type[Kind]:
    """The class as a frozen dataclass; itself where it is one. Raises: OperatorError."""
    made = kind
    if "__dataclass_params__" not in vars(kind):
        try:
            made = dataclass(frozen=True)(kind)
        except TypeError as error:
            _refuse_class(name, kind, f"cannot be a frozen dataclass: {error}")
    for item in fields(made):
        if not (item.compare and item.repr and item.init and item.hash is not False):
            _refuse_class(
                name,
                kind,
                f"has the field '{item.name}', which takes no part in init, repr, == and hash; "
                "expected one that does, since equal operators are taken for one",
            )
    return made


def _refuse_class(name: str, kind: object, problem: str) -> NoReturn:
    title = getattr(kind, "__qualname__", repr(kind))
    raise OperatorError(f"operators: {title}, '{name}', {problem}.", code="operator-class")


def _check_fields(name: str, kind: type[Operator]) -> None:
    """Each field that a model must give is one that it can say. Raises: OperatorError."""
    try:
        known = field_types(kind)
    except (NameError, TypeError) as error:
        _refuse_class(name, kind, f"has annotations that cannot be evaluated: {error}")
    for item in fields(kind):
        needed = item.default is MISSING and item.default_factory is MISSING
        if needed and not is_plain(known[item.name]):
            raise OperatorError(
                f"operators: the field '{item.name}' of '{name}' is {item.type}; expected a "
                "number, a text or a tuple of them, which a model can say.",
                code="operator-field",
                hints=("an OnnxRule or an AtenRule with build=... makes it of other attributes.",),
            )


def _onnx_rule(name: str, given: object) -> OnnxRule | None:
    """Raises: OperatorError."""
    if given is None:
        return None
    rule = OnnxRule(*given) if isinstance(given, tuple) and len(given) == 3 else given
    if isinstance(rule, OnnxRule):
        match rule.domain, rule.name, rule.versions:
            case (str(), str(called), tuple(versions)) if called and versions:
                if all(isinstance(number, int) for number in versions):
                    return rule
    raise OperatorError(
        f"operators: onnx of '{name}' is {given!r}; expected the domain, the name and the "
        "versions of its nodes, as in ('my.ops', 'Mish', (1,)), or an OnnxRule.",
        code="operator-onnx",
    )


def _aten_rule(name: str, given: object) -> AtenRule | None:
    """Raises: OperatorError."""
    if given is None:
        return None
    rule = AtenRule(given) if isinstance(given, str) else given
    if isinstance(rule, AtenRule) and _TARGET.fullmatch(rule.target):
        return rule
    raise OperatorError(
        f"operators: aten of '{name}' is {given!r}; expected the name of an operator of "
        "torch.library, as in 'my::mish', or an AtenRule.",
        code="operator-aten",
    )


def _place(kind: type[Operator]) -> tuple[str, str, str]:
    """Where a class is defined."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return kind.__module__, kind.__qualname__, file


def _described(kind: type[Operator]) -> str:
    module, name, file = _place(kind)
    return f"{module}.{name} ({file})" if file else f"{module}.{name}"
