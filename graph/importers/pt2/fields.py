"""Fields of JSON objects that are not trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from ...errors import ModelError

Json = Mapping[str, object]
T = TypeVar("T")
_KINDS: Mapping[type, str] = {
    bool: "a truth value",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "a list",
    str: "a text",
}


def parsed(data: memoryview, name: str) -> Json:
    """The object that a text is. Raises: ModelError."""
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"model: '{name}' is no JSON: {type(error).__name__}.", code="pt2-json"
        ) from error
    return checked(found, dict, name)


def checked(value: object, kind: type[T], what: str) -> T:
    """A value that is of a kind. Raises: ModelError."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ModelError(
            f"model: {what} of the archive is {_KINDS.get(type(value), 'null')}; expected "
            f"{_KINDS[kind]}.",
            code="pt2-field",
        )
    return value


def field(item: object, name: str, kind: type[T]) -> T:
    """A field of an object. Raises: ModelError where there is none of that kind."""
    return checked(checked(item, dict, f"what holds '{name}'").get(name), kind, f"'{name}'")


def union(item: object, what: str) -> tuple[str, object]:
    """The one alternative of a union, `{"as_int": 3}`. Raises: ModelError."""
    table = checked(item, dict, what)
    if len(table) != 1:
        raise ModelError(
            f"model: {what} of the archive has {len(table)} alternatives; expected one.",
            code="pt2-union",
        )
    return next(iter(table.items()))
