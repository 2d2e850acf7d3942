"""What identifies a pass from one process to the next: where its class comes from, and the values
of its fields.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import FunctionType

from .origin import Definition, is_ours, origin_of


@dataclass(frozen=True, slots=True)
class PassIdentity:
    """What identifies a pass. origin: the package that brings it, or the module that holds it; ""
    of ours. key: None where nothing identifies it, and `unknown` says why.
    """

    origin: str
    key: str | None
    unknown: str = ""


class _Unknown(Exception):
    """A value has no text that identifies it."""


def pass_identity(one: object) -> PassIdentity:
    """What identifies a pass, a value of a frozen dataclass or a function of a module."""
    definition: Definition = one if isinstance(one, FunctionType) else type(one)
    origin = "" if is_ours(definition) else str(origin_of(definition))
    try:
        own = _definition(definition)
        return PassIdentity(origin, own if definition is one else f"{own}{_fields(one)}")
    except _Unknown as reason:
        return PassIdentity(origin, None, str(reason))


def _definition(definition: Definition) -> str:
    """A class or a function as a text. Raises: _Unknown."""
    if is_ours(definition):
        return f"{definition.__module__}.{definition.__qualname__}"
    origin = origin_of(definition)
    if origin.key is None:
        raise _Unknown(origin.unknown)
    return origin.key


def _fields(value: object) -> str:
    """The fields of a value as a text. Raises: _Unknown."""
    if not is_dataclass(value) or isinstance(value, type):
        if getattr(value, "__dict__", None) or _slots(value):
            raise _Unknown(f"{type(value).__qualname__} is no dataclass, and holds values")
        return "()"
    if not type(value).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise _Unknown(f"{type(value).__qualname__} is not frozen")
    listed = (f"{item.name}={_text(getattr(value, item.name))}" for item in fields(value))
    return f"({', '.join(listed)})"


def _slots(value: object) -> bool:
    return any(getattr(kind, "__slots__", ()) for kind in type(value).__mro__)


def _text(value: object) -> str:
    """A value as a text, which differs for values that differ. Raises: _Unknown."""
    if value is None or isinstance(value, bool | int | str | bytes):
        return repr(value)
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))},)"
    if isinstance(value, Enum):
        return f"{_definition(type(value))}.{value.name}"
    if isinstance(value, type | FunctionType):
        return _definition(value)
    if is_dataclass(value):
        return f"{_definition(type(value))}{_fields(value)}"
    raise _Unknown(f"a field holds a {type(value).__name__}")
