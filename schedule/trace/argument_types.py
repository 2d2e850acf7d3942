"""Whether the arguments of a recorded step are of the kinds that its primitive takes: a trace comes
from a file, and a comparison of a text with a number deep inside says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import BoundArguments, Parameter
from types import NoneType, UnionType
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_WORDS = {str: "a text", int: "a whole number", bool: "true or false", NoneType: "null"}


def misfit(method: Callable[..., object], bound: BoundArguments) -> tuple[str, str] | None:
    """The first argument that is not of its kind: its name, and the kind; None where all fit.

    method: as it stands in its class; what Literal says is looked at by the primitive itself, which
    lists what it knows.
    """
    hints = _hints(method)
    for name, value in bound.arguments.items():
        several = bound.signature.parameters[name].kind is Parameter.VAR_POSITIONAL
        values = value if several else (value,)
        if not all(_fits(item, hints[name]) for item in values):
            return name, _text(hints[name])
    return None


@cache
def _hints(method: Callable[..., object]) -> Mapping[str, object]:
    return get_type_hints(method)


def _fits(value: object, hint: object) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, TypeVar):
        return True
    if origin is Literal:
        return isinstance(value, str)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Sequence:
        return isinstance(value, tuple) and all(_fits(item, inner[0]) for item in value)
    if origin is Callable:
        return callable(value)
    if hint is int:
        return type(value) is int
    return isinstance(value, hint) if isinstance(hint, type) else False


def _text(hint: object) -> str:
    """The kind in words."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(map(_text, inner))
    if origin is Sequence:
        return f"a list, each {_text(inner[0])}"
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if isinstance(hint, type):
        return _WORDS.get(hint, hint.__name__)
    return str(hint)
