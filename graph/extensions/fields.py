"""The fields of an operator of others, made of what a model says: numbers, texts, lists of them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ...tir.errors import TilewrightError, known_names
from ..ops.base import Operator

Plain = bool | int | float | str | tuple["Plain", ...] | None
Kind = TypeVar("Kind", bound=Operator)
_SCALARS = (bool, int, float, str)


class WrongField(Exception):
    """What a model says of an operator does not fit its fields."""


def field_types(kind: type[Operator]) -> dict[str, object]:
    """The fields by name with their annotations. Raises: NameError where one is not defined."""
    hints = get_type_hints(kind)
    return {item.name: hints[item.name] for item in fields(kind)}


def is_plain(annotation: object) -> bool:
    """Whether a model can say a field of this type: numbers, texts, tuples of them, None."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return all(map(is_plain, inner))
    if origin is tuple:
        return all(one is Ellipsis or is_plain(one) for one in inner)
    return annotation in (*_SCALARS, types.NoneType) or origin is Literal


def operator_from(kind: type[Kind], values: Mapping[str, object]) -> Kind:
    """The operator with these fields. Raises: WrongField; TilewrightError that its class raises."""
    known = field_types(kind)
    for name in values:
        if name not in known:
            raise WrongField(
                f"'{name}' is no field of {kind.__name__}; known are {known_names(name, known)}"
            )
    for item in fields(kind):
        without = item.default is MISSING and item.default_factory is MISSING
        if without and item.name not in values:
            raise WrongField(f"it lacks '{item.name}', a field of {kind.__name__}")
    given = {name: _fitting(name, value, known[name]) for name, value in values.items()}
    try:
        return kind(**given)
    except TilewrightError:
        raise
    except Exception as error:
        listed = ", ".join(f"{name}={value!r}" for name, value in given.items())
        raise WrongField(
            f"{kind.__name__}({listed}) raises {type(error).__name__}: {error}"
        ) from error


def _fitting(name: str, value: object, annotation: object) -> object:
    """A value as the type of a field. Raises: WrongField."""
    for one in _alternatives(annotation):
        made = _as(value, one)
        if made is not MISSING:
            return made
    raise WrongField(f"'{name}' is {value!r}; expected {_title(annotation)}")


def _alternatives(annotation: object) -> tuple[object, ...]:
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation,)


def _as(value: object, annotation: object) -> object:
    """A value as a type; MISSING where it is none. Integers are truth values where they are 0 or 1,
    and floats.
    """
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return value if any(value == one and type(value) is type(one) for one in inner) else MISSING
    if origin is tuple and isinstance(value, tuple | list):
        each = inner[:1] * len(value) if inner[-1:] == (Ellipsis,) else inner
        if len(each) != len(value):
            return MISSING
        made = tuple(_as(one, kind) for one, kind in zip(value, each, strict=True))
        return MISSING if MISSING in made else made
    if annotation is types.NoneType:
        return None if value is None else MISSING
    if annotation is bool:
        return bool(value) if isinstance(value, int) and value in (0, 1) else MISSING
    if annotation is int:
        return value if isinstance(value, int) and not isinstance(value, bool) else MISSING
    if annotation is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number else MISSING  # type: ignore[arg-type]
    if annotation is str:
        return value if isinstance(value, str) else MISSING
    return MISSING


def _title(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)
