"""Whether the argument of a recorded step is of the type that its primitive takes: a trace comes
from a file, and a comparison of a text with a number deep inside says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

_WORDS = {str: "a text", int: "a whole number", bool: "true or false", NoneType: "null"}


def misfit(value: object, hint: object) -> str | None:
    """What was expected, in words, of a value that is not of a type; None where it is.

    hint: a type, as an annotation gives it; what Literal says is looked at by the primitive itself,
    which lists what it knows.
    """
    return None if _fits(value, hint) else _text(hint)


def _fits(value: object, hint: object) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return isinstance(value, str)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Sequence:
        return isinstance(value, tuple) and all(_fits(item, inner[0]) for item in value)
    if hint is int:
        return type(value) is int
    return isinstance(value, hint) if isinstance(hint, type) else False


def _text(hint: object) -> str:
    """The type in words."""
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
