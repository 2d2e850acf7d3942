"""What others bring, found when a name is met that tilewright does not know.

The distributions that are installed say by their entry points which names they bring: only those
that bring the name are imported. Who keeps what was made of a model records what was asked, since
another answer would make another engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from ...tir.errors import known_names
from ...tir.extensions import (
    EXTENSIONS_VARIABLE,
    extensions_are_off,
    installed_entry_points,
    package_entry_points,
    package_title,
)
from ..errors import ExtensionError
from .entries import load
from .operators import DECLARED, Declaration
from .origin import OPERATORS

Front = Literal["onnx", "aten"]


@dataclass(frozen=True, slots=True)
class Request:
    """An operator that a model has and tilewright does not know. key: what the table of rules of
    the front end calls it; namespace: its domain, or its library.
    """

    front: Front
    key: str
    namespace: str


_asked: ContextVar[dict[Request, None] | None] = ContextVar("_asked", default=None)


@contextmanager
def recorded_requests() -> Iterator[dict[Request, None]]:
    """What is asked for within, as the keys of a dict."""
    found = dict[Request, None]()
    token = _asked.set(found)
    try:
        yield found
    finally:
        _asked.reset(token)


def declared_for(request: Request) -> Declaration | None:
    """Who declares the operator of a node; None where nobody does.

    Raises: ExtensionError where the package that brings its namespace does not load.
    """
    asked = _asked.get()
    if asked is not None:
        asked[request] = None
    table = DECLARED.onnx if request.front == "onnx" else DECLARED.aten
    if request.key not in table:
        for entry in package_entry_points(OPERATORS):
            if entry.name == request.namespace:
                load(entry)
    return table.get(request.key)


def identity(request: Request) -> str | None:
    """What identifies the answer to a request from one process to the next, "" where nobody
    declares the operator; None where nothing does.
    """
    try:
        found = declared_for(request)
    except ExtensionError:
        return None
    if found is None:
        return ""
    key = found.origin.key
    return None if key is None else f"{found.version} {key}"


def why_not_declared(namespace: str, table: Iterable[str]) -> tuple[str, str]:
    """What is to be said of an operator that nobody declares, and what helps. table: the names of
    that front end that are declared.
    """
    brought = [one for one in installed_entry_points(OPERATORS) if one.name == namespace]
    packages = ", ".join(map(package_title, brought))
    if packages and extensions_are_off():
        return f"{packages} may bring it", f"{EXTENSIONS_VARIABLE}=0 keeps it from being loaded."
    if packages:
        own = [name for name in table if name.startswith(f"{namespace}.")]
        return f"{packages} does not bring it; it brings {known_names('', own)}", ""
    return "", ""
